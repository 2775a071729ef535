"""The project speaks only of itself: no file names the place where it was written."""

import re
from pathlib import Path

from tests.architecture.tree import project_files, text

TEXT = {"", ".cfg", ".csv", ".ini", ".json", ".lock", ".md", ".py", ".sh", ".svg", ".toml", ".txt", ".yaml", ".yml"}

HOME = re.compile(r"(?<![\w.~/}-])/(?:work|root|home|Users)/[\w.]")
"""A folder of one machine. URLs and relative paths that happen to contain the word are left alone."""

REGISTRY = re.compile(
    r"files\.pythonhosted\.org|pypi\.org/simple|--(?:extra-)?index-url|--find-links|\bindex[-_]url\s*="
)

BESIDE = re.compile(r"\.\./shared\b|\bshared/(?:data|design|prototypes)\b")
"""Only the fixture that looks for the real graphs knows where they may lie."""

MAY_NAME = {
    REGISTRY: {Path("tests/architecture/test_lock.py"), Path("tests/architecture/test_words.py")},
    HOME: {Path("tests/architecture/test_words.py")},
    BESIDE: {Path("tests/conftest.py"), Path("tests/architecture/test_words.py")},
}


def places(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number} {line.strip()}"
        for path in project_files()
        if path.suffix in TEXT and path not in MAY_NAME[pattern]
        for number, line in enumerate(text(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_folder_of_one_machine():
    assert not places(HOME)


def test_no_package_index():
    assert not places(REGISTRY)


def test_nothing_beside_the_checkout():
    assert not places(BESIDE)


def test_the_patterns_find_what_they_are_for():
    assert HOME.search("open('/home/ada/graphs')")
    assert not HOME.search("https://example.org/home/ada")
    assert REGISTRY.search("pip install --index-url x")
    assert BESIDE.search("../shared/x")

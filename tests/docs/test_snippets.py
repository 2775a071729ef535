"""Snippets of the documentation that say they run, run.

A fenced block whose language is followed by `runs` is executed in an empty folder, the project's commands on the path:

    ```console runs
    $ dorylus explain gcn
    a line that must appear in the output
    ```

Lines below a command must appear in its output, in that order; `...` stands for any text, and alone for any lines. A
`python runs` block is a script.
"""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, project_files, text

FENCE = re.compile(r"^```(console|python) runs[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass(frozen=True)
class Snippet:
    path: Path
    line: int
    language: str
    body: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def snippets_of(path: Path, words: str) -> list[Snippet]:
    return [
        Snippet(path, words.count("\n", 0, match.start()) + 1, match[1], match[2]) for match in FENCE.finditer(words)
    ]


SNIPPETS = [one for path in project_files() if path.suffix == ".md" for one in snippets_of(path, text(path))]


def run(command: list[str] | str, folder: Path) -> str:
    """The output of a command, stdout and stderr together; a failure fails the test with it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    done = subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def commands(body: str) -> list[tuple[str, list[str]]]:
    """(command, expected lines), for each line that starts with `$ `."""
    found: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip() and line.strip() != "...":
            assert found, f"the block starts without a command: {line}"
            found[-1][1].append(line.strip())
    return found


def assert_in_order(expected: list[str], output: str) -> None:
    lines = iter([line.strip() for line in output.splitlines()])
    for wanted in expected:
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.split("...")))
        assert any(pattern.fullmatch(line) for line in lines), f"{wanted!r} does not follow in:\n{output}"


@pytest.mark.parametrize("snippet", SNIPPETS, ids=str)
def test_the_snippet_runs(snippet: Snippet, tmp_path: Path):
    if snippet.language == "python":
        run([sys.executable, "-c", snippet.body], tmp_path)
        return
    for command, expected in commands(snippet.body):
        assert_in_order(expected, run(command, tmp_path))


def test_a_wrong_snippet_would_be_found(tmp_path: Path):
    words = "text\n\n```console runs\n$ echo one\no...e\n...\ntwo\n```\n"
    (snippet,) = snippets_of(Path("page.md"), words)
    ((command, expected),) = commands(snippet.body)
    assert (snippet.line, command, expected) == (3, "echo one", ["o...e", "two"])
    with pytest.raises(AssertionError, match="'two' does not follow"):
        assert_in_order(expected, run(command, tmp_path))
    with pytest.raises(AssertionError, match="no such thing"):
        run("echo no such thing; exit 1", tmp_path)

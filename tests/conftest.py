"""Fixtures of all rooms, and how hypothesis runs.

`make test` tries the same examples every time; with DORYLUS_EXAMPLES (as in `make cluster`) each run has fresh ones.
"""

import os
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("default", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("long", deadline=None, derandomize=False, print_blob=True)
hypothesis.settings.load_profile("long" if os.environ.get("DORYLUS_EXAMPLES") else "default")


PROCESS_TESTS = (
    "tests/cluster/",
    "tests/local_cloud/",
    "tests/integration/",
    "tests/cli/test_train.py",
    "tests/cli/test_resume.py",
    "tests/benchmarks/",
)
"""They start many processes with deadlines: on a busy machine one may be tried again, and the closing line says so."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: workers take whole files, and none shall be alone with a long one at the end."""
    for item in items:
        if item.nodeid.startswith(PROCESS_TESTS):
            item.add_marker(pytest.mark.flaky(reruns=2))
    items.sort(key=lambda item: not item.nodeid.startswith(PROCESS_TESTS))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real graphs in their original formats: DORYLUS_REAL_DATA, or `shared/data` beside the checkout."""
    named = os.environ.get("DORYLUS_REAL_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real graphs are not beside this checkout")
    return folder


@pytest.fixture
def cache_dir(tmp_path: Path) -> Path:
    """An empty folder for graph folders, in place of the user's cache directory."""
    folder = tmp_path / "cache"
    folder.mkdir()
    return folder

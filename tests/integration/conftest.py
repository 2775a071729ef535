"""One world for all tests of a file: each job has its own name, run folder and instances."""

from collections.abc import Iterator

import pytest

from tests.integration.world import World, world


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with pytest.MonkeyPatch.context() as monkeypatch, world(monkeypatch, tmp_path_factory.mktemp("world")) as made:
        yield made

"""One synthesis takes seconds, so there are two in all: of the default deployment, and of one that differs in all."""

import pytest

from tests.infra.synthesis import OTHER, Synthesis, synthesise


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On one worker, so that the syntheses are made once."""
    for item in items:
        if isinstance(item, pytest.Function) and {"default", "other", "either"} & set(item.fixturenames):
            item.add_marker(pytest.mark.xdist_group("synthesis"))


@pytest.fixture(scope="session")
def default(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    return synthesise(tmp_path_factory.mktemp("default"), {})


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    return synthesise(tmp_path_factory.mktemp("other"), dict(OTHER))

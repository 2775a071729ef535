"""One synthesis takes seconds, so there are two in all: of the default deployment, and of one that differs in all."""

import pytest

from tests.infra.synthesis import OTHER, Synthesis, synthesise


@pytest.fixture(scope="session")
def default(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    return synthesise(tmp_path_factory.mktemp("default"), {})


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Synthesis:
    return synthesise(tmp_path_factory.mktemp("other"), dict(OTHER))

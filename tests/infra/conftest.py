"""One synthesis takes seconds, so there are two in all: of the default deployment, and of one that differs in all."""

import pytest

from tests.infra.synthesis import Synthesis, synthesise

OTHER = {
    "dorylus:name": "other",
    "dorylus:endpoints": "private",
    "dorylus:zones": "2",
    "dorylus:function_architecture": "x86_64",
    "dorylus:dashboard": "false",
    "dorylus:notify_email": "ada@example.org",
    "dorylus:dataset_buckets": "colleagues, archive",
    "dorylus:log_days": "7",
}


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

"""Small jobs of the simulated clusters, prepared once per process."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.cluster.small_jobs import SmallJob, small_job


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, str], SmallJob]:
    """(number of a graph, name of a model) -> its job."""
    parent: Path = tmp_path_factory.mktemp("graphs")
    return cache(lambda number, model: small_job(parent, number, model))

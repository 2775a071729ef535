"""Small jobs of the simulated clusters, prepared once per process."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.cluster.small_jobs import SmallJob, small_job


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, str], SmallJob]:
    """(number of a graph, name of a model) -> its job."""
    parent: Path = tmp_path_factory.mktemp("graphs")
    return cache(lambda number, model: small_job(parent, number, model))


@pytest.fixture(scope="session")
def long_jobs(jobs: Callable[[int, str], SmallJob]) -> Callable[[int, str], SmallJob]:
    """The same over six epochs, evaluated after four and at the end."""
    return cache(lambda number, model: replace(jobs(number, model), num_epochs=6, eval_frequency=4, _outputs={}))

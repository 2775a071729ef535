"""Cora, trained for real: the same bits on 1, 2, 3 and 5 graph servers and 1 and 2 parameter servers, in both modes.

`make test` runs a diagonal of the matrix, `make cluster` all of it.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from common.wire.channel import Faults
from tests.cluster.real_jobs import CORA, Trained, train
from tests.cluster.small_jobs import MODELS
from tests.local_cloud.jobs import ROOT

Train = Callable[..., Trained]
Reference = Callable[..., Trained]
"""By model, number of intervals and precision."""


@dataclass(frozen=True)
class Case:
    model: str
    num_graph_servers: int
    num_parameter_servers: int
    mode: str
    num_intervals: int = 12
    precision: str = "float32"

    @property
    def settings(self) -> dict[str, str]:
        return {
            **CORA,
            "model.name": self.model,
            "training.mode": self.mode,
            "training.precision": self.precision,
            "cut.num_intervals": str(self.num_intervals),
            "cluster.num_graph_servers": str(self.num_graph_servers),
            "cluster.num_parameter_servers": str(self.num_parameter_servers),
        }

    def __str__(self) -> str:
        servers = f"{self.num_graph_servers}g{self.num_parameter_servers}p"
        return f"{self.model}-{servers}-{self.mode}-{self.num_intervals}-{self.precision}"


DIAGONAL = (
    Case("gcn", 2, 2, "pipe"),
    Case("gcn", 3, 1, "sync"),
    Case("gcn", 5, 2, "pipe"),
    Case("gcn", 3, 2, "pipe", num_intervals=1),
    Case("gcn", 5, 2, "sync", num_intervals=40),
    Case("graphsage", 2, 1, "sync"),
    Case("graphsage", 3, 2, "pipe"),
    Case("gin", 3, 2, "sync"),
    Case("gin", 5, 1, "pipe"),
    Case("gat", 1, 2, "sync"),
    Case("gat", 2, 1, "pipe"),
    Case("gat", 5, 2, "sync"),
    Case("gcn", 3, 2, "pipe", precision="mixed"),
    Case("graphsage", 2, 1, "sync", precision="mixed"),
    Case("gin", 5, 1, "pipe", precision="mixed"),
)
MATRIX = tuple(
    Case(model, graph, parameter, mode, intervals)
    for model in MODELS
    for graph in (1, 2, 3, 5)
    for parameter in (1, 2)
    for mode in ("sync", "pipe")
    for intervals in ((1, 12, 40) if graph == 3 else (12,))
)


@pytest.fixture(scope="session")
def train_cora(tmp_path_factory: pytest.TempPathFactory) -> Train:
    cache_dir = tmp_path_factory.mktemp("cora")
    return lambda settings, faults=None: train("cora", settings, cache_dir, faults)


@pytest.fixture(scope="session")
def reference(train_cora: Train) -> Reference:
    """One graph server, one parameter server, pipe."""
    return cache(lambda model, *of: train_cora(Case(model, 1, 1, "pipe", *of).settings))


def check(case: Case, train_cora: Train, reference: Reference) -> None:
    trained = train_cora(case.settings)
    assert trained.bits == reference(case.model, case.num_intervals, case.precision).bits
    if case.num_intervals >= case.num_graph_servers:
        assert trained.busy == frozenset(range(case.num_graph_servers)), "every graph server runs tasks"
        assert min(trained.result.intervals_per_server) > 0
    if 1 < case.num_graph_servers <= case.num_intervals:
        assert min(trained.result.ghosts_per_server) > 0, "every graph server holds ghosts"
        assert trained.result.traffic.payload["graph_graph"] > 0


@pytest.mark.parametrize("case", DIAGONAL, ids=str)
def test_the_same_bits_on_any_number_of_servers(case: Case, train_cora: Train, reference: Reference):
    check(case, train_cora, reference)


@pytest.mark.cluster
@pytest.mark.parametrize("case", MATRIX, ids=str)
def test_the_same_bits_in_the_whole_matrix(case: Case, train_cora: Train, reference: Reference):
    check(case, train_cora, reference)


SLOW_AND_LOSSY = Faults(max_delay=0.003, loss=0.02, duplication=0.2, seed=1)
REPEATING = Faults(max_delay=0.001, loss=0.01, duplication=0.5, seed=2)


@pytest.mark.parametrize(
    ("model", "faults"),
    [("gcn", SLOW_AND_LOSSY), ("gat", REPEATING)],
)
def test_the_same_bits_on_a_bad_network(model: str, faults: Faults, train_cora: Train, reference: Reference):
    assert train_cora(Case(model, 3, 2, "pipe").settings, faults).bits == reference(model, 12).bits


def test_the_cut_decides_the_bits_and_the_model_does(reference: Reference):
    """Else equal bits would mean little."""
    bits = [reference("gcn", intervals).bits for intervals in (1, 12, 40)] + [reference("gat", 12).bits]
    assert len({one.last for one in bits}) == 4
    losses = [one.metrics[-1].loss for one in bits[:3]]
    assert max(losses) - min(losses) < 0.05  # other dropout masks, the same training


WEIGHTS_OF_A_RUN = """
import sys
from pathlib import Path
from tests.cluster.real_jobs import CORA, train
sys.stdout.write(train("cora", {**CORA, "cut.num_intervals": "1"}, Path(sys.argv[1])).bits.last)
"""


def test_the_number_of_blas_threads_in_the_environment_changes_nothing(tmp_path: Path, reference: Reference):
    runs = []
    for number, threads in enumerate(("1", "4", None)):
        environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
        environment |= {"OPENBLAS_NUM_THREADS": threads} if threads else {}
        command = [sys.executable, "-c", WEIGHTS_OF_A_RUN, str(tmp_path / str(number))]
        runs.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True))
    found = [run.communicate(timeout=300)[0] for run in runs]
    assert found == [reference("gcn", 1).bits.last] * 3

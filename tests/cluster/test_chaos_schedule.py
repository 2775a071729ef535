"""A seeded schedule of bad luck: roles are killed one after another while leases are killed and messages go astray.

In pipe the end is bit-equal to an undisturbed run, and nothing is left running (`Restarting.run` looks).
"""

import random
from pathlib import Path

import pytest

from common.role_start import Weather
from common.wire.channel import Faults as WireFaults
from local_cloud.cluster import ClusterOptions
from local_cloud.lambda_service.settings import Faults
from tests.cluster.process_list import needs_proc
from tests.cluster.processes import prepared, run_here
from tests.cluster.restarting import Restarting
from tests.local_cloud.jobs import MY_GRAPH

pytestmark = needs_proc

SETTINGS = {
    "dataset.directed": "false",
    "training.num_epochs": "12",
    "cut.num_intervals": "6",
    "cluster.num_graph_servers": "3",
    "cluster.num_parameter_servers": "2",
    "cluster.max_restarts": "9",
    "backend.name": "lambda",
    "backend.lease_max_tasks": "16",
    "output.save_model_frequency": "2",
}


def schedule(die: random.Random, kills: int) -> list[tuple[int, str]]:
    """(epoch, role): no graph server twice in a row, which would take it out of the job."""
    roles = ["graph0", "graph1", "graph2", "parameter0", "parameter1"]
    struck = die.sample(roles, kills)
    return sorted((die.randint(2, 10), role) for role in struck)


@pytest.mark.parametrize(
    ("seed", "kills", "secure"),
    [(1, 2, False), *(pytest.param(seed, 4, seed % 2 == 1, marks=pytest.mark.cluster) for seed in range(2, 8))],
)
def test_a_schedule_of_bad_luck_changes_no_bit(seed: int, kills: int, secure: bool, cache_dir: Path, tmp_path: Path):
    die = random.Random(seed)
    options = ClusterOptions(
        secure=secure,
        concurrency=6,
        faults=Faults(crash_probability=0.1, throttle_probability=0.1, seed=seed),
        weather=Weather(WireFaults(max_delay=0.002, loss=0.001, duplication=0.05, seed=seed)),
        checkpoints=str(tmp_path / "checkpoints"),
    )
    job = Restarting(prepared(MY_GRAPH, SETTINGS, cache_dir), options, schedule(die, kills))
    result = job.run()
    assert job.bits(result) == run_here(prepared(MY_GRAPH, {**SETTINGS, "backend.name": "auto"}, cache_dir)).bits
    assert len(job.rewound) == kills, job.notes

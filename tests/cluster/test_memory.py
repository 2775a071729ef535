"""A long job needs no more memory than a short one: after 100 epochs nothing grows, in any process."""

import asyncio
import os
from collections import defaultdict
from pathlib import Path
from statistics import median

import pytest

from common.epoch_metrics import EpochMetrics
from local_cloud.cluster import Cluster, ClusterOptions
from local_cloud.run_folder import new_job_id
from local_cloud.run_result import Watch
from tests.cluster.process_list import PROC, needs_proc, started_by
from tests.cluster.processes import prepared

pytestmark = [needs_proc, pytest.mark.cluster]

EPOCHS, WARM_UP = 1000, 100
GROWTH = 1.05
PAGE = os.sysconf("SC_PAGE_SIZE")
SETTINGS = {
    "training.num_epochs": str(EPOCHS),
    "cut.num_intervals": "4",
    "cluster.num_graph_servers": "2",
    "backend.name": "lambda",
}


def resident(pid: int) -> int:
    """Bytes."""
    return int((PROC / str(pid) / "statm").read_text().split()[1]) * PAGE


def test_a_thousand_epochs_of_cora_stay_flat(cache_dir: Path):
    # Two functions: in the first epochs each of them has held every constant of the job, and keeps it.
    cluster = Cluster(prepared("cora", SETTINGS, cache_dir), new_job_id("test"), ClusterOptions(concurrency=2))
    sizes: dict[str, dict[int, int]] = defaultdict(dict)

    def epoch_ended(metrics: EpochMetrics) -> None:
        if metrics.epoch % 10:
            return
        roles = {role.pid: role.name for role in cluster.roles}
        for process in started_by(os.getpid()):
            is_worker = "worker_main.py" in process.command
            name = roles.get(process.pid, f"worker {process.pid}" if is_worker else process.command[-40:])
            sizes[name][metrics.epoch] = resident(process.pid)

    result = asyncio.run(cluster.run(Watch(on_epoch=epoch_ended)))
    assert result.stopped.last_version == EPOCHS
    whole = {name: found for name, found in sizes.items() if min(found) <= WARM_UP and max(found) == EPOCHS}
    assert len([name for name in whole if name.startswith("worker ")]) >= 2
    assert {"parameter0", "graph0", "graph1"} <= whole.keys()
    grown = {name: (early(found), late(found)) for name, found in whole.items() if late(found) > GROWTH * early(found)}
    assert not grown, sizes


def early(found: dict[int, int]) -> float:
    return median(size for epoch, size in found.items() if WARM_UP <= epoch <= 2 * WARM_UP)


def late(found: dict[int, int]) -> float:
    return median(size for epoch, size in found.items() if epoch > EPOCHS - WARM_UP)

"""Async with every role a process: rows are stale by at most s, also after a role was lost."""

from pathlib import Path

import pytest

from local_cloud.asynchrony import asynchrony
from local_cloud.cluster import ClusterOptions
from parameter_server.checkpoint import CheckpointFolder
from tests.cluster.process_list import needs_proc
from tests.cluster.processes import prepared, run_processes
from tests.cluster.restarting import Restarting
from tests.local_cloud.jobs import MY_GRAPH

SETTINGS = {
    "dataset.directed": "false",
    "training.mode": "async",
    "training.num_epochs": "12",
    "cut.num_intervals": "6",
    "cluster.num_graph_servers": "2",
    "cluster.num_parameter_servers": "2",
    "output.save_model_frequency": "4",
}


@pytest.mark.parametrize(
    ("staleness", "weight_update", "backend"),
    [
        (0, "epoch", "lambda"),
        (1, "interval", "local_cpu"),
        pytest.param(2, "epoch", "lambda", marks=pytest.mark.cluster),
    ],
)
def test_no_row_is_staler_than_allowed(staleness: int, weight_update: str, backend: str, cache_dir: Path):
    given = {"staleness": str(staleness), "weight_update": weight_update}
    settings = {**SETTINGS, **{f"training.{key}": value for key, value in given.items()}, "backend.name": backend}
    ran = run_processes(prepared(MY_GRAPH, settings, cache_dir), ClusterOptions(concurrency=6))
    told = asynchrony(ran.result.totals.counts)
    assert [metrics.epoch for metrics in ran.bits.metrics] == list(range(1, 13))
    assert [metrics.epoch for metrics in ran.bits.metrics if metrics.exact] == [10, 12]
    assert told.max_staleness <= staleness
    assert sum(told.stale_reads.values()) > 0
    assert told.stash_bytes > 0


@needs_proc
def test_a_lost_role_leaves_the_bound_as_it_is(cache_dir: Path, tmp_path: Path):
    """Weights versions are not epochs here: one step per interval."""
    settings = {**SETTINGS, "training.staleness": "1", "training.weight_update": "interval"}
    options = ClusterOptions(checkpoints=str(tmp_path / "checkpoints"))
    job = Restarting(prepared(MY_GRAPH, settings, cache_dir), options, [(5, "parameter1")])
    result = job.run()
    assert len(job.rewound) == 1
    assert asynchrony(result.totals.counts).max_staleness <= 1
    newest = CheckpointFolder(str(options.checkpoints)).newest()
    assert newest is not None
    assert newest.clock.epoch == result.stopped.last_epoch == 12
    assert newest.clock.version == newest.state.version == result.stopped.last_version > 12

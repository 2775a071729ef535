"""Tensor tasks on the graph server's own cores and on functions, in one job of real processes: not a bit differs."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cloud.cluster import ClusterOptions
from tests.cluster.processes import prepared, run_here, run_processes

WIDE = {
    "model.name": "gcn",
    "model.hidden_size": "1024",  # a task takes long enough for others to wait
    "training.num_epochs": "8",
    "training.seed": "7",
    "cut.num_intervals": "12",
    "backend.max_lambdas": "2",
    "backend.relaunch_floor_ms": "60000",
}


@pytest.fixture
def one_core() -> Iterator[None]:
    """On a machine with many, no task would wait for a core."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.parametrize("mode", ["pipe", pytest.param("sync", marks=pytest.mark.cluster)])
def test_where_a_task_runs_changes_no_bit(mode: str, one_core: None, cache_dir: Path):
    settings = {**WIDE, "training.mode": mode}
    expected = run_here(prepared("cora", {**settings, "backend.name": "local_cpu"}, cache_dir))
    job = prepared("cora", {**settings, "backend.name": "hybrid"}, cache_dir)
    ran = run_processes(job, ClusterOptions(concurrency=2))
    assert ran.bits == expected.bits
    places = Counter(record.backend for record in ran.records if record.backend)
    assert set(places) == {"local_cpu", "lambda"}, places
    counts = ran.result.totals.counts
    assert counts["tasks_here"] == places["local_cpu"]
    assert counts["tasks"] == places["lambda"]
    assert ran.result.totals.lambda_requests > 0
    links = ran.result.traffic.payload
    assert min(links["parameter_lambda"], links["parameter_graph"]) > 0


def test_a_job_whose_tasks_never_wait_opens_no_lease(cache_dir: Path):
    settings = {"training.num_epochs": "2", "training.seed": "7", "cut.num_intervals": "1"}
    job = prepared("cora", {**settings, "backend.name": "hybrid"}, cache_dir)
    ran = run_processes(job, ClusterOptions(concurrency=2))
    assert {record.backend for record in ran.records if record.backend} == {"local_cpu"}
    assert ran.result.totals.lambda_requests == 0

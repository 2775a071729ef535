"""Forecasts of the doctor: of the same counts and rates as a plan."""

from pathlib import Path

import pytest

from common.resolve_spec import Layer
from common.saga.epoch_work import WITHIN, shares
from graph_server.assemble import usable_cores
from local_cloud.explain import graph_counts
from local_cloud.inspect import inspect
from local_cloud.plan.counts import count_work
from tests.local_cloud.jobs import MY_GRAPH
from tests.local_cloud.test_payload import prepared


def flags(**dataset: object) -> Layer:
    return Layer("flags", {"dataset": dataset, "cut": {"num_intervals": 4}, "training": {"num_epochs": 7}})


@pytest.mark.parametrize("target", ["cora", MY_GRAPH])
def test_an_epoch_takes_what_a_plan_says_of_as_many_cores(target: str, cache_dir: Path):
    time = inspect(target, flags(directed=False), Path.cwd()).time
    assert time is not None
    assert (time.num_intervals, time.num_epochs, time.num_cores) == (4, 7, min(4, usable_cores()))
    job = prepared(target, {"dataset.directed": "false", "cut.num_intervals": "4"}, cache_dir)
    each = shares(count_work(job, graph_counts(job.folder, 1)))
    seconds = (each.tensor + each.graph) / time.num_cores
    assert time.epoch_seconds == pytest.approx((seconds / WITHIN, seconds * WITHIN), rel=0.01)


def test_a_narrow_model_takes_less():
    narrow, wide = (
        inspect("cora", Layer("flags", {"model": {"hidden_size": width}}), Path.cwd()).time for width in (16, 512)
    )
    assert narrow is not None
    assert wide is not None
    assert narrow.epoch_seconds < wide.epoch_seconds
    assert narrow.num_intervals == 2


def test_what_could_not_be_counted_has_no_forecast(tmp_path: Path):
    (tmp_path / "broken.csv").write_text("0,1\n1\n")
    assert inspect(str(tmp_path / "broken.csv"), Layer("flags", {}), Path.cwd()).time is None

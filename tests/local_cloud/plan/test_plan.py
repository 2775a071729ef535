"""A plan counts what a training moves, to the byte, and estimates what follows by stated rules."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import SpecError
from common.instances import GIB, instance
from common.pricing import spot_share
from local_cloud.explain import graph_counts
from local_cloud.plan.counts import count_work
from local_cloud.plan.estimate import Cluster, Functions, Range, cpu_epoch, lambda_epoch, least_share, server_dollars
from local_cloud.plan.plan import plan_job
from tests.local_cloud.jobs import INTERVALS, MY_GRAPH
from tests.local_cloud.test_payload import prepared

BOX, CLUSTER = instance("c7g.2xlarge"), Cluster(2, 1)


def test_rounded_rows_take_less(cache_dir: Path):
    settings = {"dataset.directed": "false", "training.hoist": "false"}
    whole, rounded = (
        count_work(job, graph_counts(job.folder, 3))
        for job in (
            prepared(MY_GRAPH, settings | {"training.precision": precision}, cache_dir)
            for precision in ("float32", "mixed")
        )
    )
    assert whole.edge_bytes > rounded.edge_bytes > whole.edge_bytes / 2, "features are not rounded"
    assert whole.row_bytes == rounded.row_bytes


@given(f=st.floats(0.01, 0.99), r=st.floats(1.01, 20))
def test_the_least_share_is_where_the_value_is_the_same(f: float, r: float):
    """Without Lambda an epoch takes 1 and costs 1; with it the servers run 1 - f, and f is paid r times."""
    value = 1 / ((1 - f) * (1 - f + f * r))
    if abs(f - least_share(r)) > 1e-6:
        assert (value > 1) == (f > least_share(r))


def test_more_cores_help_as_far_as_there_are_intervals(cache_dir: Path):
    job = prepared(MY_GRAPH, {"dataset.directed": "false"}, cache_dir)
    work, few, many = count_work(job, graph_counts(job.folder, 3)), instance("c7g.large"), instance("c7g.16xlarge")
    assert work.num_intervals == int(INTERVALS["cut.num_intervals"])
    one = cpu_epoch(work, few, Cluster(1, 1))
    assert cpu_epoch(work, few, Cluster(3, 1)).middle == pytest.approx(one.middle / 3)
    assert cpu_epoch(work, many, Cluster(3, 1)).middle == pytest.approx(one.middle * 2 / work.num_intervals)


def test_with_lambda_the_latency_may_be_hidden_or_not(cache_dir: Path):
    job = prepared("cora", {}, cache_dir)
    work = count_work(job, graph_counts(job.folder, 3))
    away = lambda_epoch(work, BOX, CLUSTER, Functions(12, 1769, 240.0))
    assert work.tasks_in_a_row == 3
    assert away.low < 0.3 < away.high


def test_a_server_is_billed_for_a_minute():
    short, hour = server_dollars(Range(1, 2), BOX, CLUSTER), server_dollars(Range(3600, 3600), BOX, CLUSTER)
    assert short.low == short.high == pytest.approx(3 * BOX.usd_hour / 60)
    assert hour.low == pytest.approx(3 * BOX.usd_hour)
    spot = server_dollars(Range(3600, 3600), BOX, CLUSTER, spot=True)
    assert (spot.low / hour.low, spot.high / hour.high) == pytest.approx(spot_share())


@pytest.mark.parametrize(
    ("name", "vcpus", "gib"),
    [("c7g.large", 2, 4), ("c5n.xlarge", 4, 10.5), ("m7i.4xlarge", 16, 64), ("r7g.xlarge", 4, 32)],
)
def test_boxes(name: str, vcpus: int, gib: float):
    box = instance(name)
    assert (box.vcpus, box.memory_bytes / GIB) == (vcpus, gib)


def test_a_box_that_nobody_sells_is_refused():
    with pytest.raises(SpecError, match=r"did you mean c7g\.xlarge"):
        instance("c7g.xlarg")


def test_the_plan_of_a_job(cache_dir: Path):
    settings = {"cluster.instance_type": "r7i.xlarge", "budget.max_cost_usd": "0.001"}
    plan = plan_job(prepared("cora", settings, cache_dir))
    assert {option.instance_type for option in plan.options} >= {"r7i.xlarge", "c7g.2xlarge"}
    assert {(option.backend, option.spot) for option in plan.options if option.instance_type == "r7i.xlarge"} == {
        (backend, spot) for backend in ("local_cpu", "lambda") for spot in (False, True)
    }
    assert all(option.fits for option in plan.options)
    assert len(plan.memory_bytes) == 3
    assert plan.links["local_cpu"]["graph_lambda"] == 0 < plan.links["lambda"]["graph_lambda"]
    assert any("budget.max_cost_usd = 0.001 is below every estimate" in note for note in plan.notes)
    assert not plan.lambda_pays
    assert "the way to the functions takes longer than the work" in plan.verdict


def test_what_does_not_fit_is_said(cache_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("local_cloud.plan.memory.GRAPH_SERVER_BYTES", 40 * 10**9)
    plan = plan_job(prepared("cora", {}, cache_dir))
    assert not [option for option in plan.options if option.fits]
    assert any("take more graph servers" in note for note in plan.notes)

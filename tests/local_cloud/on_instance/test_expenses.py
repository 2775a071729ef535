"""What a generation starts with: the cutter's minutes, earlier generations, and what is left of time and money."""

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from common.pricing import on_demand, spot_share
from common.wire.keys import new_key_pair
from local_cloud import run_folder
from local_cloud.budget import END_SECONDS
from local_cloud.observer import Silent
from local_cloud.on_instance.expenses import LAST_SECONDS, TEARDOWN_SECONDS, site_of, spending_of, spent_before
from local_cloud.on_instance.job_record import JobRecord
from local_cloud.on_instance.own_role import Keys, Post
from local_cloud.on_instance.settings import Settings
from local_cloud.prepare import PreparedJob, prepare_job
from local_cloud.recorded_run import Run
from local_cloud.run_folder import RunFolder
from local_cloud.run_result import Load, Totals
from local_cloud.summary import Summary, to_json
from tests.local_cloud.jobs import ROOT, load

HOUR = 3600
ENVIRONMENT = {
    "DORYLUS_STACK": "small",
    "DORYLUS_BUCKET": "small-bucket",
    "DORYLUS_JOBS_TABLE": "small-jobs",
    "DORYLUS_MEMBERS_TABLE": "small-members",
    "DORYLUS_DISK_GB": "100",
    "DORYLUS_PRIVATE_ENDPOINTS": "10",
    "DORYLUS_FUNCTION_ARCHITECTURE": "x86_64",
    "AWS_DEFAULT_REGION": "us-east-1",
}
ENDPOINTS = 10 * 0.01
"""An hour of them."""
CUTTER_USD = (0.145 + ENDPOINTS) * (HOUR + TEARDOWN_SECONDS) / HOUR


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> PreparedJob:
    spec = load("cora", {"cut.num_intervals": "2", "cluster.instance_type": "c7g.xlarge"}).spec
    return prepare_job(spec, base_folder=ROOT, cache_dir=tmp_path_factory.mktemp("graph"), observer=Silent())


@pytest.fixture
def folder(tmp_path: Path):
    with RunFolder.claim(tmp_path / "run") as made:
        yield made


@pytest.fixture
def post(instance):
    def made(*, generation: int = 1, launched_ago: float = 0.0, **record: Any) -> Post:
        pair = new_key_pair()
        here = replace(instance(generation=generation), launched=time.time() - launched_ago)
        return Post(Settings.read(ENVIRONMENT), here, JobRecord(record), "parameter0", Keys(pair, pair, pair))

    return made


@pytest.fixture
def before(job, folder):
    """What was spent when an instance comes to its post."""
    return lambda at: spent_before(job, folder, at, site_of(job, at))


def test_the_cutter_is_paid_first(before, post):
    spent = before(post(cut_seconds=HOUR))
    assert spent.cost_usd == pytest.approx(CUTTER_USD)
    assert {item.what: item.usd for item in spent.bill} == {
        "cutter: 1 x c7g.xlarge": pytest.approx(CUTTER_USD * 0.145 / 0.245),
        "private endpoints": pytest.approx(CUTTER_USD * 0.1 / 0.245),
        "disks": None,
    }
    assert (spent.seconds, spent.restarts) == (HOUR, 0)
    assert before(post()).cost_usd == 0


def test_the_cutters_requests_and_the_graph_folder_that_it_left_are_billed(job, before, post):
    """The bundled one is in no bucket."""
    at = post(cut_seconds=HOUR, dataset="s3://mine/cora.npz", cut_s3_reads=2_000_000, cut_s3_writes=1_000_000)
    bill = {item.what: item for item in before(at).bill}
    assert (bill["S3 reads"].usd, bill["S3 writes"].usd) == (pytest.approx(0.80), pytest.approx(5.00))
    stored = sum(path.stat().st_size for path in job.folder.path.rglob("*") if path.name != "manifest.json")
    months = (HOUR + TEARDOWN_SECONDS) / (730 * HOUR)
    assert bill["S3 storage"].usd == pytest.approx(stored / 1e9 * months * 0.023, rel=1e-3)
    assert "S3 storage" not in {item.what for item in before(post(cut_seconds=HOUR, dataset="cora")).bill}


def test_functions_are_billed_as_what_they_were_deployed_as(job, folder, post):
    """Whatever the servers are: here c7g.xlarge."""
    at = post(deadline=int(time.time() + HOUR))
    bill = spending_of(Run(job, "job-1", folder, lambda watch: None), at, Silent()).cost(
        Totals(lambda_gb_seconds=1e6), 1.0
    )
    assert [item.usd for item in bill.items if item.what == "Lambda x86_64"] == [pytest.approx(16.6667)]


def test_what_an_earlier_generation_has_summed_up_holds(before, folder, post):
    summed_up = Summary(
        job_id="job-1", run_dir="", state="Failed", seconds=100.0, cut_sha256="", bytes_moved={}, tasks=7
    )
    folder.write_text(run_folder.SUMMARY, to_json(msgspec.structs.replace(summed_up, cost_usd=1.5)))
    spent = before(post(generation=3, cut_seconds=HOUR))
    assert (spent.cost_usd, spent.seconds, spent.tasks, spent.restarts) == (1.5, 100.0, 7, 2)


def test_of_one_that_was_killed_its_epochs_tell(before, folder, post):
    (folder.path / run_folder.METRICS).write_text(
        '{"epoch":1,"loss":1.0,"train_accuracy":null,"valid_accuracy":null,"test_accuracy":null,"exact":true,'
        f'"seconds":{HOUR}.0}}\n'
    )
    spent = before(post(generation=2, cut_seconds=HOUR))
    assert spent.cost_usd == pytest.approx(CUTTER_USD + 2 * 0.145 + ENDPOINTS)  # a graph and a parameter server
    assert (spent.seconds, spent.restarts) == (2 * HOUR, 1)


@pytest.mark.parametrize(("seconds_left", "stops"), [(LAST_SECONDS + 3, True), (LAST_SECONDS + HOUR, False)])
def test_time_ends_at_the_jobs_deadline(job, folder, post, seconds_left: float, stops: bool):
    """However long it took until here."""
    at = post(launched_ago=500.0, cut_seconds=HOUR, deadline=int(time.time() + seconds_left))
    run = Run(job, "job-1", folder, lambda watch: None, earlier=spent_before(job, folder, at, site_of(job, at)))
    asked: list[str] = []
    spending = spending_of(run, at, Silent())
    spending.check_start()
    spending.stoppable(asked.append)
    spending.load(Load(0, 0, Totals()))
    assert bool(asked) == stops


def test_the_budget_pays_for_the_teardown_and_for_spot_at_the_price_on_demand(job, folder, post):
    """A graph server and a parameter server, spot, an hour after their launch; and a cutter's hour before."""
    spot = job.spec.cluster.model_copy(update={"spot": True})
    until_end = HOUR + END_SECONDS + TEARDOWN_SECONDS
    at_most = CUTTER_USD + (2 * 0.145 + ENDPOINTS) * math.ceil(until_end) / HOUR
    for more, stops in ((0.002, False), (-0.001, True)):
        budget = job.spec.budget.model_copy(update={"max_cost_usd": at_most + more})
        of = replace(job, spec=job.spec.model_copy(update={"cluster": spot, "budget": budget}))
        at = post(launched_ago=float(HOUR), cut_seconds=HOUR, deadline=int(time.time() + HOUR))
        run = Run(of, "job-1", folder, lambda watch: None, earlier=spent_before(of, folder, at, site_of(of, at)))
        asked: list[str] = []
        spending = spending_of(run, at, Silent())
        spending.stoppable(asked.append)
        spending.load(Load(0, 0, Totals()))
        assert bool(asked) == stops
        bill = spending.cost(Totals(), float(HOUR))
        hours = (HOUR + TEARDOWN_SECONDS) / HOUR
        assert bill.usd == pytest.approx((spot_share()[1] * 2 * 0.145 + ENDPOINTS) * hours)
        assert on_demand(bill.items) == pytest.approx((2 * 0.145 + ENDPOINTS) * hours)

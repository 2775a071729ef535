"""What a person's machine does with a deployment, against moto's server: real clients, real requests."""

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.cloud_names import JobState
from common.errors import SpecError
from local_cloud.account.deployment import Account, Deployment, NotThere
from local_cloud.account.doctor import examine
from local_cloud.account.jobs import download, list_jobs, metrics, status, stop
from local_cloud.account.logs import job_logs
from local_cloud.account.submit import find_job, submit
from local_cloud.costs import Site
from tests.local_cloud.account_world import STACK, World, answering, new_world

ID = "cora-20261201T100000-abc123"


@pytest.fixture(scope="module")
def endpoint_url() -> Iterator[str]:
    with answering() as url:
        yield url


@pytest.fixture
def there(endpoint_url: str, monkeypatch: pytest.MonkeyPatch) -> World:
    return new_world(endpoint_url, monkeypatch)


def spec(folder: Path, text: str = "dataset: cora\n", name: str = "my job.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_deployment_is_found_by_its_name(there: World):
    found = there.deployment
    assert (found.bucket, found.jobs_table, found.log_group) == ("mine-bucket", "mine-jobs", "/mine/servers")
    assert found.site == Site(region="us-east-1", functions="x86_64", endpoints=10)


def test_no_stack_of_this_name(there: World):
    with pytest.raises(NotThere, match="no stack 'yours' is there") as caught:
        Deployment.find(there.account, "yours")
    assert "cdk deploy" in caught.value.fix


def test_nobody_answers(there: World):
    with pytest.raises(NotThere, match="AWS cannot be asked"):
        Deployment.find(Account("http://127.0.0.1:1", "us-east-1"), STACK)


# ---- submit


@pytest.mark.parametrize("name", ["my job.yaml", "a+b%20ü.yml", "plain.json"])
def test_a_spec_becomes_the_job_that_the_trigger_says(there: World, tmp_path: Path, name: str):
    text = '{"dataset": "cora"}' if name.endswith("json") else "dataset: cora\n"
    submitted = submit(there.deployment, spec(tmp_path, text, name))
    assert there.keys("jobs/") == [f"jobs/{name}"]
    there.record(ID, "Pending")
    there.deployment.jobs.put_item(Item={"id": f"upload#{submitted.upload.digest}", "job_id": ID})
    assert find_job(there.deployment, submitted).state is JobState.PENDING


def test_the_digest_is_that_of_the_version_that_was_uploaded(there: World, tmp_path: Path):
    first, second = (submit(there.deployment, spec(tmp_path)) for _ in range(2))
    assert first.upload.digest != second.upload.digest
    parts = ("mine-bucket", "jobs/my job.yaml", second.upload.version)
    assert second.upload.digest == hashlib.sha256("\0".join(parts).encode()).hexdigest()


def test_a_refusal_is_found_without_a_record(there: World, tmp_path: Path):
    submitted = submit(there.deployment, spec(tmp_path))
    refused = f"my-job-20261201T100000-{submitted.upload.digest[:6]}"
    told = {"job_id": refused, "state": "Failed", "failure_reason": "too many servers", "notes": ["a note"]}
    there.put(f"runs/{refused}/status.json", json.dumps(told).encode())
    found = find_job(there.deployment, submitted)
    assert (found.job_id, found.state, found.reason, found.notes) == (
        refused, JobState.FAILED, "too many servers", ("a note",)
    )  # fmt: skip


def test_nobody_takes_it(there: World, tmp_path: Path):
    submitted, slept = submit(there.deployment, spec(tmp_path)), []
    with pytest.raises(NotThere, match="nobody has taken jobs/my job.yaml"):
        find_job(there.deployment, submitted, patience=-1.0, sleep=slept.append)
    assert slept == []


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("dataset: cora\nmodle: gcn\n", "job.yaml", "modle"),
        ("dataset: cora\ncluster: {spot: maybe}\n", "job.yaml", "spot"),
        ("dataset: cora", "job.txt", "is no job spec"),
        ("- a\n", "job.yaml", "the top level is a list"),
    ],
)
def test_a_bad_spec_is_refused_before_anything_is_uploaded(
    there: World, tmp_path: Path, text: str, name: str, said: str
):
    with pytest.raises(SpecError, match=said):
        submit(there.deployment, spec(tmp_path, text, name))
    assert there.keys() == []


def test_what_is_built_on_aws_alone_passes(there: World, tmp_path: Path):
    text = "dataset: s3://mine-bucket/datasets/reddit\ncluster: {spot: true}\n"
    assert submit(there.deployment, spec(tmp_path, text)).notes == ()


# ---- status, list, stop


def test_status_of_a_record(there: World):
    there.record(ID, "Training")
    found = status(there.deployment, ID)
    assert (found.state, found.created, found.record["num_servers"]) == (JobState.TRAINING, 1000, 2)


def test_status_of_nobody(there: World):
    with pytest.raises(NotThere, match="no job nobody is known"):
        status(there.deployment, "nobody")


def test_jobs_are_listed_the_newest_first_and_nothing_else_is(there: World):
    for number in range(30):
        there.record(f"job-{number:02}", "Completed", created=1000 + number)
    there.deployment.jobs.put_item(Item={"id": "upload#1", "job_id": "job-00"})
    there.deployment.jobs.put_item(Item={"id": "active", "jobs": {"job-00"}})
    assert [job.job_id for job in list_jobs(there.deployment)] == [f"job-{n:02}" for n in reversed(range(30))]


def test_stop_leaves_word_in_the_run_folder(there: World):
    there.record(ID, "Training")
    stop(there.deployment, ID)
    assert there.keys("runs/") == [f"runs/{ID}/STOP"]


@pytest.mark.parametrize("state", ["Completed", "Failed", "Stopped"])
def test_what_is_over_cannot_be_stopped(there: World, state: str):
    there.record(ID, state)
    with pytest.raises(NotThere, match=f"it is {state}"):
        stop(there.deployment, ID)
    assert there.keys() == []


# ---- what it left


def test_a_run_folder_is_fetched_once(there: World, tmp_path: Path):
    for name, body in {"summary.json": b"{}", "checkpoints/1/weights": b"w" * 9, "STOP": b""}.items():
        there.put(f"runs/{ID}/{name}", body)
    there.put(f"runs/{ID}0/summary.json", b"of another job")
    fetched = sorted(str(path.relative_to(tmp_path)) for path in download(there.deployment, ID, tmp_path))
    assert fetched == ["checkpoints/1/weights", "summary.json"]
    assert (tmp_path / "checkpoints/1/weights").read_bytes() == b"w" * 9
    assert list(download(there.deployment, ID, tmp_path)) == [], "all is here"
    time.sleep(1.1)  # S3 tells times in seconds
    there.put(f"runs/{ID}/summary.json", b"[]")
    assert [path.name for path in download(there.deployment, ID, tmp_path)] == ["summary.json"]
    assert not list(tmp_path.rglob("*.part"))


def test_no_file_leads_out_of_the_folder(there: World, tmp_path: Path):
    there.put(f"runs/{ID}/../../evil", b"")
    with pytest.raises(NotThere, match="leads out"):
        list(download(there.deployment, ID, tmp_path / "here"))
    assert not (tmp_path / "evil").exists()


def test_a_job_that_left_nothing(there: World, tmp_path: Path):
    with pytest.raises(NotThere, match="has left nothing"):
        list(download(there.deployment, ID, tmp_path))


def test_metrics_as_far_as_they_are_written(there: World):
    assert metrics(there.deployment, ID) == []
    there.put(f"runs/{ID}/metrics.jsonl", b'{"epoch": 1}\n{"epoch": 2}\n')
    assert [entry["epoch"] for entry in metrics(there.deployment, ID)] == [1, 2]


def test_logs_of_this_job_alone(there: World):
    client, now = there.account.client("logs"), int(time.time() * 1000)
    mine, others = {"job_id": ID, "role": "graph0", "time": 3.5}, {"job_id": "other"}
    lines = [
        json.dumps({**mine, "text": "it begins"}),
        json.dumps({**mine, "text": "it failed", "traceback": "Traceback ..."}),
        json.dumps({**mine, "EpochSeconds": 1.0}),
        json.dumps({**others, "text": f"not {ID}"}),
        f"no JSON, of {ID}",
    ]
    client.create_log_stream(logGroupName="/mine/servers", logStreamName="i-1")
    events = [{"timestamp": now, "message": line} for line in lines]
    client.put_log_events(logGroupName="/mine/servers", logStreamName="i-1", logEvents=events)
    found = list(job_logs(there.deployment, ID))
    assert [(line.role, line.text) for line in found] == [
        ("graph0", "it begins"),
        ("graph0", "it failed\nTraceback ..."),
    ]
    assert found[0].when.timestamp() == 3.5


# ---- doctor


def test_the_doctor_looks_at_everything(there: World):
    found = {check.what: check for check in examine(there.account, STACK)}
    assert found["credentials"].is_well
    assert found["stack"].is_well
    assert "mine-bucket" in found["stack"].found
    assert {"concurrent functions", "on-demand vCPUs", "spot vCPUs"} <= found.keys()
    assert all(check.fix for check in found.values() if not check.is_well)


def test_the_doctor_says_what_to_do_without_a_stack(there: World):
    found = {check.what: check for check in examine(there.account, "yours")}
    assert not found["stack"].is_well
    assert found["stack"].fix == "cdk deploy -c dorylus:name=yours"


def test_without_an_answer_nothing_else_is_asked(there: World):
    (only,) = examine(Account("http://127.0.0.1:1", "us-east-1"), STACK)
    assert (only.what, only.is_well) == ("credentials", False)

"""The commands that speak to a deployment, from their arguments to their words, against moto's server."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import cli.submit
from cli.main import main
from common.cloud_names import JOBS
from lambda_functions.upload_event import Upload
from tests.local_cloud.account_world import World, answering, new_world

ID = "cora-20261201T100000-abc123"


@pytest.fixture(scope="module")
def endpoint_url() -> Iterator[str]:
    with answering() as url:
        yield url


@pytest.fixture
def there(endpoint_url: str, monkeypatch: pytest.MonkeyPatch) -> World:
    return new_world(endpoint_url, monkeypatch)


def said(there: World, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, *there.flags])


def trigger(there: World, name: str, watched: threading.Event) -> None:
    """What the deployment does with an upload: a record, and, when somebody looks, the end."""
    while not there.keys(JOBS):
        time.sleep(0.05)
    version = there.deployment.s3.head_object(Bucket="mine-bucket", Key=f"{JOBS}{name}")["VersionId"]
    digest = Upload("mine-bucket", f"{JOBS}{name}", version, 0, None).digest  # type: ignore[arg-type]
    there.record(ID, "Pending")
    there.deployment.jobs.put_item(Item={"id": f"upload#{digest}", "job_id": ID})
    watched.wait()
    there.put(f"runs/{ID}/metrics.jsonl", b'{"epoch": 1, "loss": 1.5}\n')
    there.record(ID, "Completed")


def test_submit_and_watch(there: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cli.submit.LOOK_AGAIN_SECONDS", 0.1)
    (tmp_path / "job.yaml").write_text("dataset: cora\n")
    watched, watch = threading.Event(), cli.submit._watch
    monkeypatch.setattr("cli.submit._watch", lambda *of: watched.set() or watch(*of))
    deployed = threading.Thread(target=trigger, args=(there, "job.yaml", watched))
    deployed.start()
    result = said(there, "submit", str(tmp_path / "job.yaml"), "--watch")
    deployed.join()
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split()[:2] == [ID, "Pending"]
    assert "epoch 1  loss 1.5" in lines
    assert lines[-1].split()[:2] == [ID, "Completed"]


def test_a_bad_spec_is_not_uploaded(there: World, tmp_path: Path):
    (tmp_path / "job.yaml").write_text("dataset: cora\nmodle: {}\n")
    result = said(there, "submit", str(tmp_path / "job.yaml"))
    assert result.exit_code == 1
    assert "modle" in result.stderr
    assert there.keys() == []


def test_how_jobs_are(there: World):
    assert said(there, "list").stdout == "no jobs yet: dorylus submit job.yaml\n"
    there.record(ID, "Failed", reason="no capacity\nc7g.xlarge in us-east-1a: none")
    assert said(there, "list").stdout.split()[:2] == [ID, "Failed"]
    assert "c7g.xlarge in us-east-1a: none" in said(there, "status", ID).stdout
    assert json.loads(said(there, "status", ID, "--json").stdout)["state"] == "Failed"
    assert said(there, "status", "nobody").exit_code == 1


def test_stop_and_download(there: World, tmp_path: Path):
    there.record(ID, "Training")
    assert "is asked to stop" in said(there, "stop", ID).stdout
    there.put(f"runs/{ID}/summary.json", b"{}")
    result = said(there, "download", ID, str(tmp_path / "here"))
    assert result.stdout.splitlines()[-1].endswith("1 files fetched")
    assert (tmp_path / "here" / "summary.json").read_bytes() == b"{}"


def test_the_doctor_s_exit_code(there: World):
    result = said(there, "doctor")
    assert result.stdout.startswith("ok  credentials")
    assert result.exit_code == (1 if "NO " in result.stdout else 0)


def test_private_endpoints_are_counted_by_the_doctor_and_by_plan(there: World, tmp_path: Path):
    """Ten of them: five services in two zones."""
    said_by_doctor = said(there, "doctor").stdout
    assert "private endpoints            10, each counted in each zone: $0.10 an hour" in said_by_doctor
    assert "over IPv6" not in said_by_doctor
    job = ("plan", "cora", "--num-intervals", "6", "--json", "--cache-dir", str(tmp_path))
    alone, there_too = (json.loads(one.stdout) for one in (CliRunner().invoke(main, job), said(there, *job)))
    assert any("private endpoints are in it while the job runs: $0.10 an hour" in note for note in there_too["notes"])
    for before, after in zip(alone["options"], there_too["options"], strict=True):
        if before["backend"] == "local_cpu":
            more = [cost - less for cost, less in zip(after["usd"], before["usd"], strict=True)]
            assert more == pytest.approx([seconds / 3600 * 0.10 for seconds in after["seconds"]])
    assert there_too["price_ratio"] > alone["price_ratio"]  # functions are x86 there, whatever the servers are

"""Bad luck on the way: what is lost is time, never a bit, and whatever ends a job says why.

Cora, for so many epochs that a job can be disturbed.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from local_cloud.summary import Summary
from local_cloud.training import RunOptions, train_job
from tests.cluster.process_list import needs_proc
from tests.integration.fleet import Started
from tests.integration.world import World
from tests.local_cloud.jobs import Recorder, load

pytestmark = [needs_proc, pytest.mark.cluster]

SPEC = """
dataset: cora
cut: {num_intervals: 6}
training: {num_epochs: EPOCHS, seed: 3}
cluster: {num_graph_servers: 2, num_parameter_servers: 2, instance_type: c7g.large, max_restarts: 2}
backend: {name: local_cpu}
output: {save_model_frequency: 10}
"""
EPOCHS = 200
ENDLESS = 100_000


def spec(epochs: int = EPOCHS, more: str = "") -> str:
    return SPEC.replace("EPOCHS", str(epochs)) + more


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """The same job undisturbed, in this process."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "alone.yaml").write_text(spec())
    options = RunOptions(folder, folder, run_dir=folder / "run", in_process=True)
    return train_job(load(str(folder / "alone.yaml"), {}, folder), options, Recorder())


def after_a_checkpoint(here: World, job_id: str) -> None:
    prefix = f"runs/{job_id}/checkpoints/"
    here.until(lambda: any(key.endswith("manifest.json") for key in here.cloud.keys(prefix)), job_id)


def who(here: World, job_id: str, role: str) -> Started:
    here.until(lambda: here.fleet.named(job_id, role), job_id)
    found = here.fleet.named(job_id, role)
    assert found is not None
    return found


def kill_machine(started: Started) -> None:
    """The instance is gone, role and all, without a word."""
    for pid in children(started.process.pid):
        os.kill(pid, signal.SIGKILL)
    started.process.kill()


def kill_role(started: Started) -> None:
    (pid,) = children(started.process.pid)
    os.kill(pid, signal.SIGKILL)


def take_away(started: Started) -> None:
    """What the unit that polls for a spot notice does."""
    started.process.send_signal(signal.SIGTERM)


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


@pytest.mark.parametrize(
    ("role", "strike", "said"),
    [
        ("graph1", kill_role, "PeerLost"),
        ("graph1", kill_machine, "PeerLost"),
        ("parameter0", kill_machine, "PeerLost"),
        ("graph0", take_away, "SpotInterrupted"),
        ("parameter0", take_away, "SpotInterrupted"),
    ],
    ids=["role", "machine", "leader", "spot", "spot-leader"],
)
def test_a_lost_server_costs_time_and_not_one_bit(
    here: World, alone: Summary, role: str, strike: Callable[[Started], None], said: str
):
    job_id = here.submit(f"jobs/lost-{role}-{strike.__name__}.yaml", spec() + f"name: {strike.__name__}\n")
    after_a_checkpoint(here, job_id)
    strike(who(here, job_id, role))
    record = here.end(job_id)
    assert record["state"] == "Completed", here.story(job_id)
    assert record["generation"] == 2
    summary = json.loads(here.read(f"runs/{job_id}/summary.json"))
    assert summary["weights_sha256"] == alone.weights_sha256
    assert summary["restarts"] == 1
    epochs = [line["epoch"] for line in here.metrics(job_id)]
    assert epochs == sorted(set(epochs))
    if strike is not kill_machine or role != "parameter0":  # whose last seconds nobody else has
        assert epochs == list(range(1, EPOCHS + 1))
    assert said in here.history(job_id)
    assert not here.cloud.instances()


def test_an_object_named_stop_ends_the_job_at_its_next_pause(here: World):
    job_id = here.submit("jobs/endless.yaml", spec(ENDLESS))
    after_a_checkpoint(here, job_id)
    here.stop(job_id)
    record = here.end(job_id)
    assert (record["state"], record["failure_reason"]) == ("Stopped", "stopped on request"), here.story(job_id)
    check_that_it_can_go_on(here, job_id)


def test_the_budget_ends_the_job_in_time(here: World):
    job_id = here.submit("jobs/short.yaml", spec(ENDLESS, "budget: {max_runtime_seconds: 90}\n"))
    record = here.end(job_id)
    assert record["state"] == "Stopped", here.story(job_id)
    assert "budget.max_runtime_seconds" in record["failure_reason"]
    assert record["updated"] <= record["deadline"]
    check_that_it_can_go_on(here, job_id)


def test_an_error_of_the_job_is_its_end(here: World):
    job_id = here.submit(
        "jobs/weights.yaml", SPEC.replace("seed: 3", "class_weights: [1.0, 2.0]").replace("EPOCHS", "5")
    )
    record = here.end(job_id)
    assert record["state"] == "Failed"
    assert record["generation"] == 1
    assert "class_weights has 2 numbers" in record["failure_reason"], here.story(job_id)


def test_a_dataset_that_is_gone_when_it_is_to_be_cut(here: World):
    here.cloud.put("datasets/gone/edges.csv", "a,b\n")
    job_id = here.submit("jobs/gone.yaml", spec(5).replace("cora", here.url("datasets/gone")))
    boto3.client("s3").delete_object(Bucket=here.cloud.bucket, Key="datasets/gone/edges.csv")  # the cutter still boots
    record = here.end(job_id)
    assert record["state"] == "Failed"
    assert "nothing is at s3://small-bucket/datasets/gone" in record["failure_reason"]


def check_that_it_can_go_on(here: World, job_id: str) -> None:
    """Its last epoch has a checkpoint, and its summary says how it ended."""
    summary: dict[str, Any] = json.loads(here.read(f"runs/{job_id}/summary.json"))
    assert summary["state"] == "Stopped"
    manifest = f"runs/{job_id}/checkpoints/epoch-{summary['epochs']:06d}/manifest.json"
    assert manifest in here.cloud.keys(f"runs/{job_id}/checkpoints/")

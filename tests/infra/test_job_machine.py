"""The job's state machine, executed: moto's engine, the real definition, the real functions, EC2 that moto plays.

The test plays the servers: it finds the task token in the job's record, as parameter server 0 does.
"""

import json
import time
from collections.abc import Iterator

import boto3
import pytest

from infra.orchestration import definition
from lambda_functions import launch_servers
from tests.lambda_functions.job_cloud import JobCloud
from tests.lambda_functions.job_machine import LONGEST_HOURS, job_machine

SECONDS = 60


class Machine:
    def __init__(self, cloud: JobCloud, arn: str) -> None:
        self.cloud, self.arn, self.execution = cloud, arn, ""

    def start(self) -> None:
        self.execution = boto3.client("stepfunctions").start_execution(
            stateMachineArn=self.arn, name="job-1", input=json.dumps({"job_id": "job-1"})
        )["executionArn"]

    def token(self, phase: str, generation: int) -> str:
        """As soon as the machine waits for the servers of that phase and generation."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            record = self.cloud.jobs.get("job-1")
            if (record.get("phase"), record["generation"]) == (phase, generation) and "task_token" in record:
                return str(record["task_token"])
            assert self.status() == "RUNNING", self.history()
            time.sleep(0.1)
        raise AssertionError(self.history())

    def status(self) -> str:
        return str(boto3.client("stepfunctions").describe_execution(executionArn=self.execution)["status"])

    def end(self) -> str:
        deadline = time.monotonic() + SECONDS
        while self.status() == "RUNNING" and time.monotonic() < deadline:
            time.sleep(0.1)
        return self.status()

    def history(self) -> str:
        events = boto3.client("stepfunctions").get_execution_history(executionArn=self.execution)["events"]
        return "\n".join(str({key: value for key, value in one.items() if "Details" in key}) for one in events)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with job_machine(monkeypatch) as cloud:
        yield Machine(cloud, cloud.machine)


def succeed(token: str, state: str = "Completed") -> None:
    boto3.client("stepfunctions").send_task_success(taskToken=token, output=json.dumps({"state": state}))


def test_a_job_from_cut_to_end(machine):
    machine.cloud.record(graph="graphs/abc.dorylus/")
    machine.start()
    token = machine.token("cut", 0)
    assert [one["dorylus-phase"] for one in machine.cloud.instances().values()] == ["cut"]
    machine.cloud.put("graphs/abc.dorylus/manifest.json", "{}")
    succeed(token)
    token = machine.token("train", 1)
    assert [one["dorylus-phase"] for one in machine.cloud.instances().values()] == ["train"] * 3
    boto3.client("stepfunctions").send_task_heartbeat(taskToken=token)
    machine.cloud.put("runs/job-1/summary.json", "{}")
    succeed(token)
    assert machine.end() == "SUCCEEDED", machine.history()
    assert machine.cloud.jobs.get("job-1")["state"] == "Completed"
    assert not machine.cloud.instances()
    assert not machine.cloud.jobs.active()


def test_lost_servers_are_replaced_until_restarts_end(machine):
    machine.cloud.record(max_restarts=1)
    machine.start()
    states = boto3.client("stepfunctions")
    states.send_task_failure(taskToken=machine.token("train", 1), error="PeerLost", cause="graph1 does not answer")
    states.send_task_failure(taskToken=machine.token("train", 2), error="PeerLost", cause="graph2 does not answer")
    assert machine.end() == "FAILED", machine.history()
    record = machine.cloud.jobs.get("job-1")
    assert record["state"] == "Failed"
    assert "lost servers 2 times" in record["failure_reason"]
    assert "graph2 does not answer; max_restarts is 1" in record["failure_reason"]
    assert not machine.cloud.instances()


def test_silent_servers_count_as_lost(machine, monkeypatch):
    """The heartbeat is what notices: nobody says anything. moto calls it States.Timeout, AWS by its own name."""
    monkeypatch.setattr(launch_servers, "BEAT_SECONDS", 2)
    machine.cloud.record(max_restarts=0)
    machine.start()
    machine.token("train", 1)
    assert machine.end() == "FAILED", machine.history()
    reason = machine.cloud.jobs.get("job-1")["failure_reason"]
    assert "lost servers 1 time\n" in reason
    assert "no sign of life" in reason
    assert not machine.cloud.instances()


def test_an_error_of_the_job_is_no_loss(machine):
    machine.cloud.record()
    machine.start()
    boto3.client("stepfunctions").send_task_failure(
        taskToken=machine.token("train", 1), error="TensorTaskError", cause="NaN in interval 3"
    )
    assert machine.end() == "FAILED", machine.history()
    assert machine.cloud.jobs.get("job-1")["failure_reason"] == "NaN in interval 3"
    assert machine.cloud.read("runs/job-1/status.json")["failure_reason"] == "NaN in interval 3"
    assert not machine.cloud.instances()


def test_no_capacity_fails_at_once_in_words(machine):
    machine.cloud.record(zones=[])
    machine.start()
    assert machine.end() == "FAILED", machine.history()
    assert "3 servers could not be had at once" in machine.cloud.jobs.get("job-1")["failure_reason"]


def test_a_stop_is_an_end_and_no_failure(machine):
    machine.cloud.record()
    machine.start()
    succeed(machine.token("train", 1), "Stopped")
    assert machine.end() == "SUCCEEDED", machine.history()
    assert machine.cloud.jobs.get("job-1")["state"] == "Stopped"


def test_every_step_has_a_catch_and_a_time_out():
    states = json.loads(definition(LONGEST_HOURS))["States"]
    tasks = [one for one in states.values() if one["Type"] == "Task"]
    assert len(tasks) == 7
    for one in tasks:
        assert one["Catch"][-1]["ErrorEquals"] == ["States.ALL"]
        assert "TimeoutSeconds" in one or "TimeoutSecondsPath" in one
        assert ".waitForTaskToken" not in one["Resource"] or "HeartbeatSecondsPath" in one
    assert json.loads(definition(LONGEST_HOURS))["TimeoutSeconds"] == (LONGEST_HOURS + 1) * 3600

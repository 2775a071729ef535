"""Nothing is left behind, whoever calls and however a job ended."""

import json

import boto3
import pytest

from common.cloud_names import Phase
from lambda_functions import launch_servers
from lambda_functions.stop_job import handler as stop
from lambda_functions.sweep import handler

PARAMETER = "/small/jobs/job-1/keys"


@pytest.fixture
def running(cloud):
    """A job with an execution, three instances, keys and members."""
    cloud.record(created=100)
    launch_servers.handler({"job_id": "job-1", "phase": Phase.TRAIN, "generation": 0}, None)
    boto3.client("ssm").put_parameter(Name=PARAMETER, Value="secret", Type="SecureString")
    members = boto3.resource("dynamodb").Table("small-members")
    for name in ("0001#graph0", "0001#parameter0"):
        members.put_item(Item={"job_id": "job-1", "member": name})
    members.put_item(Item={"job_id": "job-2", "member": "0001#graph0"})
    arn = boto3.client("stepfunctions").start_execution(stateMachineArn=cloud.machine, name="job-1", input="{}")
    boto3.client("events").enable_rule(Name="small-sweep")
    return arn["executionArn"]


def members() -> set[str]:
    found = boto3.resource("dynamodb").Table("small-members").scan()["Items"]
    return {f"{one['job_id']} {one['member']}" for one in found}


def keys() -> list[str]:
    return [one["Name"] for one in boto3.client("ssm").describe_parameters()["Parameters"]]


def ended(status: str) -> dict[str, object]:
    """As EventBridge tells of the end of an execution."""
    return {"detail": {"name": "job-1", "status": status, "input": json.dumps({"job_id": "job-1"})}}


def test_tear_down_takes_all_of_one_job(cloud, running):
    assert handler({"job_id": "job-1"}, None) == {"instances": 3}
    assert not cloud.instances()
    assert PARAMETER not in keys()
    assert members() == {"job-2 0001#graph0"}
    assert handler({"job_id": "job-1"}, None) == {"instances": 0}


def test_a_stopped_execution_ends_the_job(cloud, running):
    assert handler(ended("ABORTED"), None) == {"instances": 3}
    record = cloud.jobs.get("job-1")
    assert record["state"] == "Stopped"
    assert "is ABORTED" in record["failure_reason"]
    assert cloud.read("runs/job-1/status.json")["state"] == "Stopped"
    assert not cloud.jobs.active()


def test_the_end_of_a_job_that_is_over_changes_nothing_of_it(cloud, running):
    cloud.record(state="Completed")
    handler(ended("SUCCEEDED"), None)
    assert cloud.jobs.get("job-1")["state"] == "Completed"
    assert cloud.keys("runs/") == []


def test_the_schedule_leaves_a_running_job_alone(cloud, running):
    assert handler({}, None) == {"instances": 0}
    assert len(cloud.instances()) == 3
    assert cloud.sweeps() == "ENABLED"


def test_the_schedule_finds_a_job_whose_execution_is_gone_and_then_sleeps(cloud, running):
    boto3.client("stepfunctions").stop_execution(executionArn=running)
    assert handler({}, None) == {"instances": 3}
    assert cloud.jobs.get("job-1")["state"] == "Stopped"
    assert cloud.sweeps() == "DISABLED"


def test_the_schedule_finds_a_job_that_never_got_an_execution(cloud):
    cloud.record(created=100)
    handler({}, None)
    assert "is GONE" in cloud.jobs.get("job-1")["failure_reason"]


def test_a_young_job_may_have_no_execution_yet(cloud):
    cloud.record()
    handler({}, None)
    assert cloud.jobs.get("job-1")["state"] == "Pending"


def test_an_instance_without_a_job_goes(cloud, running):
    boto3.resource("dynamodb").Table("small-jobs").put_item(Item={"id": "active"})
    assert handler({}, None) == {"instances": 3}


def test_an_object_stops_a_job(cloud):
    cloud.record()
    assert stop(cloud.put("runs/job-1/STOP", ""), None) == {"stopping": True}
    record = cloud.jobs.get("job-1")
    assert record["stop"]
    assert record["state"] == "Stopping"


def test_what_is_over_or_unknown_cannot_be_stopped(cloud):
    cloud.record(state="Completed")
    assert stop(cloud.put("runs/job-1/STOP", ""), None) == {"stopping": False}
    assert stop(cloud.put("runs/nobody/STOP", ""), None) == {"stopping": False}
    assert stop(cloud.put("runs/job-1/x/STOP", ""), None) == {"stopping": False}
    assert cloud.jobs.find("nobody") is None

"""The functions' roles allow what the functions call, and nothing more: their calls on moto, against the template.

moto enforces no policy, so calls are recorded as they leave and put to the synthesised policies: by action, by resource
and by condition. What is called and not allowed is an error, and so is what is allowed and never called.
"""

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
import pytest

from common.cloud_names import Phase
from lambda_functions import collect, job_trigger, launch_servers, stop_job, sweep
from lambda_functions.fleet import Attempt, Wanted, fleet_request
from lambda_functions.stack_settings import StackSettings
from tests.infra.calls import Call, Calls, acting_as, recording
from tests.infra.deployed import Deployed, arn
from tests.infra.least import asked, check
from tests.infra.policy import Request
from tests.lambda_functions.job_cloud import JobCloud, job_cloud, put_graph

LOGS = {
    "logs:CreateLogStream *": "the Lambda service, in the function's name",
    "logs:PutLogEvents *": "the Lambda service, in the function's name",
}
"""Grants that no recorded call needs, and why they are there."""


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobCloud]:
    with job_cloud(monkeypatch) as made:
        yield made


@pytest.fixture
def calls(cloud: JobCloud) -> Iterator[Calls]:
    with recording() as made:
        yield made


@pytest.fixture
def deployed(other, cloud: JobCloud) -> Deployed:
    return Deployed(other)


def run(calls: Calls, name: str, *acts: Callable[[], object]) -> set[Call]:
    with acting_as(name):
        for act in acts:
            act()
    return calls[name]


def test_the_trigger(deployed, cloud, calls):
    cloud.put("datasets/papers/edges.csv", "a,b\n")
    cloud.put("datasets/cut/edges.csv", "a,b\n")
    put_graph(cloud, "s3://small-bucket/datasets/cut")
    boto3.client("s3").create_bucket(Bucket="colleagues")
    boto3.client("s3").put_object(Bucket="colleagues", Key="papers.csv", Body=b"a,b\n")
    urls = ("s3://small-bucket/datasets/papers", "s3://small-bucket/datasets/cut", "s3://colleagues/papers.csv")
    events = [cloud.put(f"jobs/{number}.yaml", f"dataset: {url}\n") for number, url in enumerate(urls)]
    made = run(calls, "job-trigger", *(lambda event=event: job_trigger.handler(event, None) for event in events))
    never = {
        **LOGS,
        "s3:GetObject *jobs/[*]": "of an upload in a bucket whose versions were turned off",
        "s3:ListBucket *:archive": "as of the other bucket that was named",
        "lambda:InvokeFunction *": "of a tensor function that sleeps",
    }
    check(deployed.policy("JobTriggerjobtrigger"), asked(deployed, made), never)


def test_the_stop(deployed, cloud, calls):
    cloud.record()
    event = cloud.put("runs/job-1/STOP", "")
    made = run(calls, "stop-job", lambda: stop_job.handler(event, None))
    never = {**LOGS, "dynamodb:GetItem *": "as every function that changes records"}
    check(deployed.policy("JobTriggerstopjob"), asked(deployed, made), never)


@pytest.fixture
def launched(cloud: JobCloud, calls: Calls) -> set[Call]:
    """Of every kind: to cut, to train, after a loss, of both architectures, in both zones, and as spot instances."""
    cloud.record(graph="graphs/abc.dorylus/")
    cloud.record("job-2", instance_types=["c7i.large"], zones=["us-east-1b"])

    def launch(job_id: str, phase: str, generation: int) -> Callable[[], object]:
        event = {"job_id": job_id, "phase": phase, "generation": generation}
        return lambda: launch_servers.handler(event, None)

    steps = [("job-1", "cut", 0), ("job-1", "train", 0), ("job-1", "train", 1), ("job-2", "train", 0)]
    made = run(calls, "launch-servers", *(launch(*step) for step in steps))
    stack = StackSettings.read(os.environ)
    spot = Wanted("small", "job-1", Phase.TRAIN, 1, 3, spot=True)  # of which moto makes no fleet
    return {*made, Call.of("ec2", "CreateFleet", fleet_request(spot, _attempt(stack)))}


def _attempt(stack: StackSettings) -> Attempt:
    return Attempt(stack.places[0], "c7g.large", stack.templates["arm64"])


def test_the_launcher(deployed, launched):
    check(deployed.policy("Orchestrationlaunchservers"), asked(deployed, launched), LOGS)


def test_the_launcher_passes_one_role_to_one_service_and_ends_our_instances_alone(deployed, launched):
    policy = deployed.policy("Orchestrationlaunchservers")
    passes = Request("iam:PassRole", deployed.server_role, {"iam:PassedToService": "ec2.amazonaws.com"})
    ends = Request("ec2:TerminateInstances", arn("ec2", "instance/i-1"), {"ec2:ResourceTag/dorylus-stack": "small"})
    launches = next(
        one for one in asked(deployed, launched) if one.action == "ec2:RunInstances" and "instance/" in one.resource
    )
    assert policy.replay([passes, ends, launches]).refused == []
    changes: list[tuple[Request, dict[str, Any]]] = [
        (passes, {"resource": "arn:aws:iam::123456789012:role/admin"}),
        (passes, {"context": {"iam:PassedToService": "lambda.amazonaws.com"}}),
        (ends, {"context": {"ec2:ResourceTag/dorylus-stack": "another"}}),
        (ends, {"context": {}}),
        (launches, {"context": {"ec2:LaunchTemplate": arn("ec2", "launch-template/lt-1")}}),
        (launches, {"context": {}}),
    ]
    wrong = [dataclasses.replace(request, **change) for request, change in changes]
    assert policy.replay(wrong).refused == wrong


def test_the_collector(deployed, cloud, calls):
    cloud.record()
    cloud.put("runs/job-1/summary.json", "{}")
    made = run(calls, "collect", lambda: collect.handler({"job_id": "job-1", "result": {}}, None))
    check(deployed.policy("Orchestrationcollect"), asked(deployed, made), LOGS)


def test_the_sweeper(deployed, cloud, calls):
    cloud.record(created=100)
    launch_servers.handler({"job_id": "job-1", "phase": "train", "generation": 0}, None)
    boto3.resource("dynamodb").Table("small-members").put_item(Item={"job_id": "job-1", "member": "0001#graph0"})
    made = run(calls, "sweep", lambda: sweep.handler({}, None))
    never = {**LOGS, "events:EnableRule *": "when a job comes while the schedule goes to sleep"}
    check(deployed.policy("Sweepersweep"), asked(deployed, made), never)


def test_the_state_machine(deployed):
    """What its definition calls."""
    tasks = [one for one in deployed.definition.values() if one["Type"] == "Task"]
    called = [_task(one["Resource"].removeprefix("arn:aws:states:::"), one["Parameters"]) for one in tasks]
    never = {"logs:*": "its own log, written by Step Functions", "xray:*": "its trace, sent by Step Functions"}
    check(deployed.policy("OrchestrationMachine"), asked(deployed, set(called)), never)


def _task(resource: str, parameters: Mapping[str, Any]) -> Call:
    services = {"lambda:invoke": ("lambda", "Invoke"), "sns:publish": ("sns", "Publish")}
    services["aws-sdk:dynamodb:updateItem.waitForTaskToken"] = ("dynamodb", "UpdateItem")
    return Call.of(*services[resource], parameters)


def test_a_tensor_functions_own_code_may_do_nothing(deployed):
    """The Lambda service makes its network interface in its name."""
    policy = deployed.policy("TensorFunctionstensor0")
    interfaces = {grant.partition(" ")[0] for grant in policy.grants if grant.endswith(" *") and "ec2:" in grant}
    assert "ec2:CreateNetworkInterface" in interfaces
    own_code = {"lambda:SourceFunctionArn": arn("lambda", "function:small-tensor-0")}
    by_the_service = [Request(action) for action in interfaces]
    by_itself = [Request(action, context=own_code) for action in interfaces]
    assert policy.replay(by_the_service).refused == []
    assert policy.replay(by_itself).refused == by_itself

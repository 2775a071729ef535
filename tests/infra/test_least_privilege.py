"""The functions' roles allow what the functions call, and nothing more: their calls on moto, against the template.

moto enforces no policy, so calls are recorded as they leave and compared by action. Resources and conditions are
asserted in test_stack.py.
"""

import json
from collections.abc import Callable, Iterator

import boto3
import pytest

from lambda_functions import collect, job_trigger, launch_servers, stop_job, sweep
from tests.infra.synthesis import Synthesis
from tests.lambda_functions.job_cloud import JobCloud, job_cloud

PREFIXES = {"stepfunctions": "states", "service-quotas": "servicequotas"}
ACTIONS = {
    "s3:ListObjectsV2": {"s3:ListBucket"},
    "lambda:Invoke": {"lambda:InvokeFunction"},
    "dynamodb:TransactWriteItems": {"dynamodb:PutItem", "dynamodb:UpdateItem"},
}
"""Where a call and what it takes differ."""
BY_AWS_ITSELF = {
    "ec2:RunInstances",
    "ec2:CreateTags",
    "iam:PassRole",
    "iam:CreateServiceLinkedRole",
    "logs:CreateLogStream",
    "logs:PutLogEvents",
}
"""What AWS does in the caller's name."""
RARE = {
    "s3:GetObjectVersion": "GetObject of a version",
    "lambda:InvokeFunction": "of a tensor function that sleeps",
    "events:EnableRule": "by the sweeper, when a job comes while it goes to sleep",
}


class Recorder:
    def __init__(self) -> None:
        self.calls: set[str] = set()

    def __call__(self, model, **_: object) -> None:
        service = model.service_model.service_name
        call = f"{PREFIXES.get(service, service)}:{model.name}"
        self.calls |= ACTIONS.get(call, {call})


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobCloud]:
    with job_cloud(monkeypatch) as made:
        yield made


@pytest.fixture
def record(cloud: JobCloud) -> Callable[[Callable[[], object]], set[str]]:
    def recording(act: Callable[[], object]) -> set[str]:
        recorder = Recorder()
        boto3.setup_default_session()
        assert boto3.DEFAULT_SESSION is not None
        boto3.DEFAULT_SESSION.events.register("before-call", recorder)
        try:
            act()
        finally:
            boto3.setup_default_session()
        return recorder.calls

    return recording


def allowed(synthesis: Synthesis, part: str) -> set[str]:
    return {
        action for one in synthesis.statements(part) if one["Effect"] == "Allow" for action in one["Action"]
    } - BY_AWS_ITSELF


def check(synthesis: Synthesis, part: str, calls: set[str]) -> None:
    may = allowed(synthesis, part)
    assert calls - may == set(), "called and not allowed"
    assert may - calls - set(RARE) == set(), "allowed and never called"


def test_the_trigger(default, cloud, record):
    cloud.put("datasets/papers/edges.csv", "a,b\n")
    event = cloud.put("jobs/a.yaml", "dataset: s3://small-bucket/datasets/papers\n")
    check(default, "JobTriggerjobtrigger", record(lambda: job_trigger.handler(event, None)))


def test_the_stop(default, cloud, record):
    cloud.record()
    event = cloud.put("runs/job-1/STOP", "")
    check(default, "JobTriggerstopjob", record(lambda: stop_job.handler(event, None)) | {"dynamodb:GetItem"})


def test_the_launcher(default, cloud, record):
    cloud.record(graph="graphs/abc.dorylus/")

    def act() -> None:
        launch_servers.handler({"job_id": "job-1", "phase": "cut", "generation": 0}, None)
        launch_servers.handler({"job_id": "job-1", "phase": "train", "generation": 0}, None)

    check(default, "Orchestrationlaunchservers", record(act))


def test_the_collector(default, cloud, record):
    cloud.record()
    cloud.put("runs/job-1/summary.json", "{}")
    check(default, "Orchestrationcollect", record(lambda: collect.handler({"job_id": "job-1", "result": {}}, None)))


def test_the_sweeper(default, cloud, record):
    cloud.record(created=100)
    launch_servers.handler({"job_id": "job-1", "phase": "train", "generation": 0}, None)
    boto3.resource("dynamodb").Table("small-members").put_item(Item={"job_id": "job-1", "member": "0001#graph0"})
    check(default, "Sweepersweep", record(lambda: sweep.handler({}, None)))


def test_the_state_machine(default):
    """What its definition calls."""
    (machine,) = default.of_type("StepFunctions::StateMachine").values()
    states = json.loads(machine["DefinitionString"])["States"].values()
    called = {one["Resource"].removeprefix("arn:aws:states:::") for one in states if one["Type"] == "Task"}
    assert called == {"lambda:invoke", "aws-sdk:dynamodb:updateItem.waitForTaskToken", "sns:publish"}
    may = {action for action in allowed(default, "OrchestrationMachine") if not action.startswith(("logs:", "xray:"))}
    assert may == {"lambda:InvokeFunction", "dynamodb:UpdateItem", "sns:Publish"}

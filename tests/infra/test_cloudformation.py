"""The synthesised template, deployed into moto's CloudFormation, as far as moto goes.

What it leaves out is listed in docs/deploy/deploy.md: it is asserted on the template instead, or left for an account.
"""

import io
import json
import zipfile
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from tests.infra.on_moto import left_out, not_made, without_ipv6
from tests.infra.synthesis import Synthesis
from tests.lambda_functions.job_cloud import speak_as_nobody

pytestmark = pytest.mark.filterwarnings("ignore:Tried to parse:UserWarning")  # so it says of each of them
ASSETS = "cdk-hnb659fds-assets-123456789012-us-east-1"


@pytest.fixture
def deployed(default: Synthesis, monkeypatch: pytest.MonkeyPatch):
    speak_as_nobody(monkeypatch)
    with mock_aws(config={"lambda": {"use_docker": False}}):
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket=ASSETS)
        boto3.client("ssm").put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="31", Type="String")
        listing = json.loads((default.folder / f"{default.name}.assets.json").read_text(encoding="utf-8"))
        for asset in listing["files"].values():
            (place,) = asset["destinations"].values()
            s3.put_object(Bucket=ASSETS, Key=place["objectKey"], Body=content(default.folder, asset["source"]))
        cloudformation = boto3.client("cloudformation")
        s3.put_object(Bucket=ASSETS, Key="template", Body=json.dumps(without_ipv6(default.template)))
        cloudformation.create_stack(
            StackName=default.name,
            TemplateURL=f"https://{ASSETS}.s3.amazonaws.com/template",
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        (stack,) = cloudformation.describe_stacks(StackName=default.name)["Stacks"]
        yield stack


def content(folder: Path, source: dict[str, str]) -> bytes:
    path = folder / source["path"]
    if source["packaging"] == "file":
        return path.read_bytes()
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as file:
        for each in sorted(path.rglob("*")):
            file.write(each, each.relative_to(path))
    return body.getvalue()


def test_the_stack_comes_up(deployed, default):
    assert deployed["StackStatus"] == "CREATE_COMPLETE"
    assert not_made(default.template, default.name) == left_out()
    outputs = {one["OutputKey"] for one in deployed["Outputs"]}
    assert outputs == {"Bucket", "JobsTable", "StateMachine", "PrivateEndpoints", "FunctionArchitecture"}


def test_what_it_made_is_what_the_contract_names(deployed):
    assert boto3.client("dynamodb").list_tables()["TableNames"] == ["dorylus-jobs", "dorylus-members"]
    functions = {one["FunctionName"] for one in boto3.client("lambda").list_functions()["Functions"]}
    assert {f"dorylus-{name}" for name in ("tensor-0", "tensor-2", "job-trigger", "stop-job", "sweep")} <= functions
    machine = boto3.client("stepfunctions").list_state_machines()["stateMachines"][0]["stateMachineArn"]
    definition = boto3.client("stepfunctions").describe_state_machine(stateMachineArn=machine)["definition"]
    assert json.loads(definition)["StartAt"] == "Begin"
    environment = boto3.client("lambda").get_function_configuration(FunctionName="dorylus-job-trigger")["Environment"]
    places = json.loads(environment["Variables"]["DORYLUS_PLACES"])
    assert [one["zone"] for one in places] == ["us-east-1a", "us-east-1b", "us-east-1c"]
    assert len({one["subnet"] for one in places}) == 3
    assert json.loads(environment["Variables"]["DORYLUS_LIMITS"])["most_servers"] == 16
    assert environment["Variables"]["DORYLUS_STATE_MACHINE"] == machine

"""A deployment's worth of AWS in moto, for the functions of the job's machinery: their boto3 calls are real.

What moto does not have of it is made up here: zones with subnets, launch templates, tensor functions that only exist.
"""

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from moto import mock_aws

from common.cloud_names import JobState
from lambda_functions.job_dataset import find_dataset
from lambda_functions.job_request import JobRequest, read_request
from lambda_functions.job_table import JobTable
from lambda_functions.stack_settings import Limits

ZONES = ("us-east-1a", "us-east-1b")
LIMITS = {
    "instance_types": ["c7g.*", "c7i.*"],
    "most_servers": 8,
    "most_lambdas": 200,
    "dearest_job_usd": 20.0,
    "longest_job_hours": 48,
    "dataset_buckets": ["colleagues"],
    "function_memory_mb": 1769,
}
SPEC = "dataset: cora\n"


def request(text: str) -> JobRequest:
    """Of a deployment with those limits."""
    limits = {name: tuple(value) if isinstance(value, list) else value for name, value in LIMITS.items()}
    return read_request(text, "first.yaml", "small-bucket", Limits(**limits))  # type: ignore[arg-type]


@dataclass(frozen=True)
class JobCloud:
    bucket: str
    machine: str

    @property
    def jobs(self) -> JobTable:
        return JobTable("small-jobs")

    def put(self, key: str, body: str | bytes) -> dict[str, Any]:
        """The event that EventBridge makes of it."""
        data = body.encode() if isinstance(body, str) else body
        version = boto3.client("s3").put_object(Bucket=self.bucket, Key=key, Body=data)["VersionId"]
        return {
            "time": "2026-12-01T10:00:00Z",
            "detail": {
                "bucket": {"name": self.bucket},
                "object": {"key": key, "size": len(data), "version-id": version},
            },
        }

    def read(self, key: str) -> dict[str, Any]:
        body = boto3.client("s3").get_object(Bucket=self.bucket, Key=key)["Body"].read()
        parsed: dict[str, Any] = json.loads(body)
        return parsed

    def keys(self, prefix: str = "") -> list[str]:
        found = boto3.client("s3").list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return [entry["Key"] for entry in found.get("Contents", [])]

    def instances(self) -> dict[str, dict[str, str]]:
        """Id -> tags, of those that are not terminated."""
        filters = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        found = boto3.client("ec2").describe_instances(Filters=filters)
        return {
            one["InstanceId"]: {tag["Key"]: tag["Value"] for tag in one.get("Tags", [])}
            for reservation in found["Reservations"]
            for one in reservation["Instances"]
        }

    def executions(self) -> dict[str, str]:
        found = boto3.client("stepfunctions").list_executions(stateMachineArn=self.machine)["executions"]
        return {one["name"]: one["status"] for one in found}

    def sweeps(self) -> str:
        return str(boto3.client("events").describe_rule(Name="small-sweep")["State"])

    def record(self, job_id: str = "job-1", **changes: object) -> dict[str, Any]:
        """Puts a job that runs into the table."""
        record: dict[str, Any] = {
            "id": job_id,
            "state": JobState.PENDING.value,
            "failure_reason": "",
            "graph": "",
            "generation": 0,
            "max_restarts": 1,
            "num_servers": 3,
            "instance_types": ["c7g.large"],
            "zones": list(ZONES),
            "spot": False,
            "created": 4_000_000_000,
            "deadline": 4_100_000_000,
            "beat": 0,
            **changes,
        }
        table = boto3.resource("dynamodb").Table("small-jobs")
        table.put_item(Item=record)
        table.update_item(
            Key={"id": "active"},
            UpdateExpression="ADD jobs :one",
            ExpressionAttributeValues={":one": {job_id}},
        )
        return record


def put_graph(cloud: JobCloud, dataset: str, *, num_nodes: int = 1000, num_edges: int = 10_000) -> None:
    """What a cutter leaves of `dataset`, as far as the trigger looks at it."""
    spec = request(f"dataset: {dataset}\n").spec
    graph = find_dataset(spec, cloud.bucket, ()).graph
    sizes = {"num_nodes": num_nodes, "num_edges": num_edges, "num_features": 100, "num_classes": 10}
    manifest = {"format_version": 1, **sizes, "cut": {"num_intervals": 64}, "task": "multi_class"}
    cloud.put(f"{graph}manifest.json", json.dumps(manifest))
    cloud.put(f"{graph}defaults.json", json.dumps([{"source": "a reader", "values": {"training": {"num_epochs": 50}}}]))


@contextmanager
def job_cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobCloud]:
    """In this process: nothing is listened to, and the state machine only exists."""
    speak_as_nobody(monkeypatch)
    # Machines only start: another world of this process may have moto execute them.
    with mock_aws(config={"lambda": {"use_docker": False}, "stepfunctions": {"execute_state_machine": False}}):
        yield deploy(monkeypatch)


def speak_as_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")  # half a second each time


def deploy(monkeypatch: pytest.MonkeyPatch) -> JobCloud:
    """Into whatever answers for AWS; the functions' environment becomes this process's."""
    bucket, role = "small-bucket", _role()
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    _table("small-jobs", "id")
    _table("small-members", "job_id", "member")
    definition = json.dumps({"StartAt": "a", "States": {"a": {"Type": "Succeed"}}})
    states = boto3.client("stepfunctions")
    machine = states.create_state_machine(name="small-job", definition=definition, roleArn=role)["stateMachineArn"]
    boto3.client("events").put_rule(Name="small-sweep", ScheduleExpression="rate(5 minutes)", State="DISABLED")
    environment = {
        "DORYLUS_STACK": "small",
        "DORYLUS_BUCKET": bucket,
        "DORYLUS_JOBS_TABLE": "small-jobs",
        "DORYLUS_MEMBERS_TABLE": "small-members",
        "DORYLUS_STATE_MACHINE": machine,
        "DORYLUS_SWEEP_RULE": "small-sweep",
        "DORYLUS_TOPIC": boto3.client("sns").create_topic(Name="small-notices")["TopicArn"],
        "DORYLUS_PLACES": json.dumps(_places(role)),
        "DORYLUS_TEMPLATES": json.dumps({name: _template(name) for name in ("arm64", "x86_64")}),
        "DORYLUS_LIMITS": json.dumps(LIMITS),
        "DORYLUS_DISK_GB": "100",
        "DORYLUS_PRIVATE_ENDPOINTS": "0",
        "DORYLUS_FUNCTION_ARCHITECTURE": "arm64",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return JobCloud(bucket, machine)


def _table(name: str, key: str, sort_key: str = "") -> None:
    keys = [(key, "HASH"), *([(sort_key, "RANGE")] if sort_key else [])]
    boto3.client("dynamodb").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": one, "KeyType": kind} for one, kind in keys],
        AttributeDefinitions=[{"AttributeName": one, "AttributeType": "S"} for one, _ in keys],
        BillingMode="PAY_PER_REQUEST",
    )


def _role() -> str:
    iam = boto3.client("iam")
    arn: str = iam.create_role(RoleName="small", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    return arn


def _places(role: str) -> list[dict[str, str]]:
    subnets = {one["AvailabilityZone"]: one["SubnetId"] for one in boto3.client("ec2").describe_subnets()["Subnets"]}
    for number, _ in enumerate(ZONES):
        empty_function(f"small-tensor-{number}", role)
    return [
        {"zone": zone, "subnet": subnets[zone], "function": f"small-tensor-{number}"}
        for number, zone in enumerate(ZONES)
    ]


def empty_function(name: str, role: str) -> str:
    """Its ARN. It is there, and does nothing."""
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as file:
        file.writestr("empty.py", "")
    made = boto3.client("lambda").create_function(
        FunctionName=name, Runtime="python3.13", Role=role, Handler="empty.handler", Code={"ZipFile": code.getvalue()}
    )
    arn: str = made["FunctionArn"]
    return arn


def _template(name: str) -> dict[str, str]:
    data = {"ImageId": "ami-0123456789abcdef0"}
    made = boto3.client("ec2").create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
    return {"id": made["LaunchTemplate"]["LaunchTemplateId"], "version": "1"}

"""A deployment in moto's server, spoken to over HTTP: a stack with its outputs, a bucket, a table, a log group."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.request import Request, urlopen

import pytest
from moto.server import ThreadedMotoServer

from local_cloud.account.deployment import Account, Deployment
from tests.buckets import ACCESS

STACK = "mine"
TABLE = {
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
}
TEMPLATE = {
    "Resources": {
        "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "mine-bucket"}},
        "Jobs": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "mine-jobs", **TABLE}},
        "Logs": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "/mine/servers"}},
    },
    "Outputs": {
        "Bucket": {"Value": {"Ref": "Bucket"}},
        "JobsTable": {"Value": {"Ref": "Jobs"}},
        "StateMachine": {"Value": "arn:aws:states:us-east-1:123456789012:stateMachine:mine-job"},
        "PrivateEndpoints": {"Value": "10"},
        "FunctionArchitecture": {"Value": "x86_64"},
    },
}


@dataclass(frozen=True)
class World:
    deployment: Deployment

    @property
    def account(self) -> Account:
        return self.deployment.account

    @property
    def flags(self) -> list[str]:
        return ["--stack", STACK, "--region", "us-east-1", "--endpoint-url", str(self.account.endpoint_url)]

    def put(self, key: str, body: bytes) -> None:
        self.deployment.s3.put_object(Bucket="mine-bucket", Key=key, Body=body)

    def keys(self, prefix: str = "") -> list[str]:
        found = self.deployment.s3.list_objects_v2(Bucket="mine-bucket", Prefix=prefix)
        return [entry["Key"] for entry in found.get("Contents", [])]

    def record(self, job_id: str, state: str, *, created: int = 1000, reason: str = "") -> None:
        item = {"id": job_id, "state": state, "failure_reason": reason, "created": created, "updated": created}
        self.deployment.jobs.put_item(Item={**item, "spec": "{}", "num_servers": 2})


@contextmanager
def answering() -> Iterator[str]:
    """Where moto's server answers."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def new_world(endpoint_url: str, monkeypatch: pytest.MonkeyPatch) -> World:
    """Nothing is left of the one before."""
    for name, value in ACCESS.items():
        monkeypatch.setenv(name, value)
    urlopen(Request(f"{endpoint_url}/moto-api/reset", method="POST")).close()
    account = Account(endpoint_url, "us-east-1")
    account.client("cloudformation").create_stack(StackName=STACK, TemplateBody=json.dumps(TEMPLATE))
    made = World(Deployment.find(account, STACK))
    # moto leaves this out of the template.
    made.deployment.s3.put_bucket_versioning(Bucket="mine-bucket", VersioningConfiguration={"Status": "Enabled"})
    return made

"""What an operation takes: for each call the requests that IAM decides on, with their resources and conditions.

Source: Service Authorization Reference, https://docs.aws.amazon.com/service-authorization/latest/reference/.
A call that is not listed here is an error: whoever makes it says first what it takes.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import boto3

from tests.infra.calls import Call
from tests.infra.deployed import ACCOUNT, Deployed, arn
from tests.infra.policy import Request

READS = frozenset({"GetObject", "HeadObject"})
WRITES = frozenset({"PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"})
NAMES_NOTHING = frozenset(
    {
        "ec2:DescribeInstances",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeInstanceTypeOfferings",
        "lambda:GetAccountSettings",
        "servicequotas:GetServiceQuota",
    }
)
PREFIXES = {"stepfunctions": "states", "service-quotas": "servicequotas"}
"""Where boto3 and policies name a service differently."""
LINKED = "role/aws-service-role/{0}.amazonaws.com/AWSServiceRoleForEC2{1}"


def requests_of(call: Call, deployed: Deployed) -> list[Request]:
    service, asked = PREFIXES.get(call.service, call.service), call.params
    action = f"{service}:{call.operation}"
    if action in NAMES_NOTHING:
        return [Request(action)]
    match service:
        case "s3":
            return list(_s3(call.operation, asked))
        case "dynamodb":
            return list(_dynamodb(call.operation, asked))
        case "ssm":
            return [Request(action, arn("ssm", f"parameter{asked['Name']}"))]
        case "events":
            return [Request(action, arn("events", f"rule/{asked['Name']}"))]
        case "sns":
            return [Request(action, asked["TopicArn"])]
        case "lambda":
            verb = {"Invoke": "InvokeFunction"}.get(call.operation, call.operation)
            name = asked["FunctionName"].rpartition(":")[2]
            return [Request(f"lambda:{verb}", arn("lambda", f"function:{name}"))]
        case "states" if call.operation.startswith("SendTask"):
            return [Request(action, os.environ["DORYLUS_STATE_MACHINE"])]
        case "states":
            return [Request(action, asked.get("executionArn") or asked["stateMachineArn"])]
        case "ec2":
            return list(_ec2(call.operation, asked, deployed))
    raise AssertionError(f"nobody has said what {action} takes")


def _s3(operation: str, asked: Mapping[str, Any]) -> Iterator[Request]:
    bucket = f"arn:aws:s3:::{asked['Bucket']}"
    if operation in READS:
        yield Request("s3:GetObjectVersion" if asked.get("VersionId") else "s3:GetObject", f"{bucket}/{asked['Key']}")
    elif operation in WRITES:
        yield Request("s3:PutObject", f"{bucket}/{asked['Key']}")
    elif operation in ("ListObjectsV2", "ListObjects"):
        yield Request("s3:ListBucket", bucket, {"s3:prefix": asked.get("Prefix", "")})
    elif operation in ("DeleteObject", "DeleteObjects"):
        for key in asked.get("Keys", [asked.get("Key")]):
            yield Request("s3:DeleteObject", f"{bucket}/{key}")
    else:
        raise AssertionError(f"nobody has said what s3:{operation} takes")


def _dynamodb(operation: str, asked: Mapping[str, Any]) -> Iterator[Request]:
    if operation == "TransactWriteItems":
        for item in asked["TransactItems"]:
            ((verb, one),) = item.items()
            yield Request(f"dynamodb:{verb}Item", arn("dynamodb", f"table/{one['TableName']}"))
        return
    tables = asked["RequestItems"] if operation == "BatchWriteItem" else [asked["TableName"]]
    for table in tables:
        yield Request(f"dynamodb:{operation}", arn("dynamodb", f"table/{table}"))


def _ec2(operation: str, asked: Mapping[str, Any], deployed: Deployed) -> Iterator[Request]:
    if operation == "TerminateInstances":
        for instance in asked["InstanceIds"]:
            tags = {f"ec2:ResourceTag/{name}": value for name, value in _tags(instance).items()}
            yield Request("ec2:TerminateInstances", arn("ec2", f"instance/{instance}"), tags)
    elif operation == "CreateFleet":
        yield from _fleet(asked, deployed)
    else:
        raise AssertionError(f"nobody has said what ec2:{operation} takes")


def _tags(instance: str) -> dict[str, str]:
    filters = [{"Name": "resource-id", "Values": [instance]}]
    return {tag["Key"]: tag["Value"] for tag in boto3.client("ec2").describe_tags(Filters=filters)["Tags"]}


def _fleet(asked: Mapping[str, Any], deployed: Deployed) -> Iterator[Request]:
    """EC2 launches in the caller's name, so that all of this is asked of the caller's role."""
    (config,) = asked["LaunchTemplateConfigs"]
    template = arn("ec2", f"launch-template/{config['LaunchTemplateSpecification']['LaunchTemplateId']}")
    given = [template, arn("ec2", f"security-group/{deployed.server_group}")]
    given += [arn("ec2", f"subnet/{one['SubnetId']}") for one in config["Overrides"]]
    given.append("arn:aws:ec2:us-east-1::image/ami-1")
    instance, volume, interface = (arn("ec2", f"{kind}/new") for kind in ("instance", "volume", "network-interface"))
    for resource in (*given, instance, volume, interface, arn("ec2", "fleet/new")):
        yield Request("ec2:CreateFleet", resource)
    for resource in (*given, instance, volume, interface):
        yield Request("ec2:RunInstances", resource, {"ec2:LaunchTemplate": template})
    # The fleet's request tags instances, the launch template its volumes.
    yield Request("ec2:CreateTags", instance, {"ec2:CreateAction": "CreateFleet"})
    yield Request("ec2:CreateTags", volume, {"ec2:CreateAction": "RunInstances"})
    yield Request("iam:PassRole", deployed.server_role, {"iam:PassedToService": "ec2.amazonaws.com"})
    # In an account that has never had one.
    is_spot = asked["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == "spot"
    for service, name in (("ec2fleet", "Fleet"), *([("spot", "Spot")] if is_spot else [])):
        yield Request("iam:CreateServiceLinkedRole", f"arn:aws:iam::{ACCOUNT}:{LINKED.format(service, name)}")

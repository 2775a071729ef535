"""What the AwsSolutions rules find and we leave as it is, each with the reason. Everything else fails the synthesis."""

from collections.abc import Iterator, Mapping
from typing import Final

from aws_cdk import Acknowledgment, Validations
from cdk_nag import AwsSolutionsChecks
from constructs import Construct

from common.cloud_names import DATASETS, DEFAULTS, GRAPHS, JOBS, MANIFEST, RUNS
from infra.stack import DorylusStack

RULES: Final[Mapping[str, Mapping[str, str]]] = {
    "Network/Vpc": {
        "VPC7": "flow logs are billed by the byte, and tensors would fill them; nothing can come in from outside",
    },
    "Storage/Bucket": {
        "S1": "access logs are stored and billed for good; who wants them turns on CloudTrail's data events",
    },
    "Storage/Jobs": {"DDB3": "records of running jobs; what a job leaves is in the bucket, which keeps versions"},
    "Storage/Members": {"DDB3": "rows live as long as a job's servers"},
}
"""Path of a construct -> rule -> reason."""

ACCOUNT: Final = "<AWS::Region>:<AWS::AccountId>"
DESCRIBING: Final = "actions that describe or that the service itself scopes take no resource"
STATUS: Final = "status files have the job's id in their path"
TERMINATING: Final = "the condition on the stack's tag lets it terminate this stack's instances only"
KEYS: Final = "parameters bear the job's id, and live as long as the job"

WILDCARDS: Final[Mapping[str, Mapping[str, str]]] = {
    "TensorFunctions/tensor-{zone}": {"*": "the Lambda service makes the network interface; the code itself may not"},
    "Servers": {
        "*": "the session agent registers itself and opens channels that have no name beforehand",
        f"{{bucket}}/{DATASETS}*": "a job names its dataset",
        f"{{bucket}}/{GRAPHS}*": "graph folders are named by their content",
        f"{{bucket}}/{RUNS}*": "run folders bear the job's id",
        f"{{bucket}}/{RUNS}*/checkpoints/*": "checkpoints that newer ones replace, of any job",
        f"arn:<AWS::Partition>:ssm:{ACCOUNT}:parameter/{{name}}/jobs/*": KEYS,
    },
    "Orchestration/Machine": {"*": "log delivery and tracing name no resources"},
    "Orchestration/launch-servers": {
        "*": DESCRIBING,
        "arn:<AWS::Partition>:ec2:<AWS::Region>::image/*": "the launch template says which image; no other is allowed",
        **{
            f"arn:<AWS::Partition>:ec2:{ACCOUNT}:{kind}/*": "made at launch, from our launch templates alone"
            for kind in ("fleet", "instance", "network-interface", "volume")
        },
    },
    "Orchestration/collect": {
        f"{{bucket}}/{RUNS}*/status.json": STATUS,
        f"{{bucket}}/{RUNS}*/summary.json": "summaries have the job's id in their path",
    },
    "Sweeper/sweep": {
        "*": DESCRIBING,
        f"{{bucket}}/{RUNS}*/status.json": STATUS,
        f"arn:<AWS::Partition>:ec2:{ACCOUNT}:instance/*": TERMINATING,
        f"arn:<AWS::Partition>:ssm:{ACCOUNT}:parameter/{{name}}/jobs/*": KEYS,
        f"arn:<AWS::Partition>:states:{ACCOUNT}:execution:{{name}}-job:*": "executions bear the job's id",
    },
    "JobTrigger/job-trigger": {
        "*": DESCRIBING,
        f"{{bucket}}/{JOBS}*": "people name their job specs",
        f"{{bucket}}/{GRAPHS}*/{MANIFEST}": "graph folders are named by their content",
        f"{{bucket}}/{GRAPHS}*/{DEFAULTS}": "graph folders are named by their content",
        f"{{bucket}}/{RUNS}*/status.json": STATUS,
    },
}
"""Path of a construct -> resource that a policy leaves open -> reason."""


def add_rules(app: Construct) -> None:
    """Synthesis raises if one finds something that is not acknowledged."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))


def acknowledge(stack: DorylusStack) -> None:
    for path, finding, reason in _acknowledged(stack):
        part = stack.node.find_child(path.split("/")[0])
        for name in path.split("/")[1:]:
            part = part.node.find_child(name)
        Validations.of(part).acknowledge(Acknowledgment(id=f"AwsSolutions-{finding}", reason=reason))


def _acknowledged(stack: DorylusStack) -> Iterator[tuple[str, str, str]]:
    """(path, finding, reason)"""
    for path, rules in RULES.items():
        for rule, reason in rules.items():
            yield path, rule, reason
    for path, resources in WILDCARDS.items():
        for zone in range(stack.context.zones if "{zone}" in path else 1):
            for resource, reason in resources.items():
                words = resource.format(bucket=stack.bucket_in_findings, name=stack.context.name)
                yield path.format(zone=zone), f"IAM5[Resource::{words}]", reason
    for name in stack.context.limits.dataset_buckets:
        yield "Servers", f"IAM5[Resource::arn:<AWS::Partition>:s3:::{name}/*]", "a bucket that datasets may come from"

"""The state machine of a job, the functions of its steps, and what each of them may do.

The machine is definitions/job.asl.json, in JSONPath. Every step of it has a time-out and a catch, so that whatever
happens the fleet is terminated; what no catch sees, the sweeper does.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as stepfunctions
from constructs import Construct

from common.cloud_names import GRAPHS, RUNS
from infra.job_functions import JobFunctions
from infra.network import Network
from infra.python_function import PythonFunction, allow, allow_terminate, log_retention, own_arn
from infra.servers import Servers
from infra.sweeper import Sweeper
from infra.tensor_function import TensorFunctions

DEFINITION = Path(__file__).with_name("definitions") / "job.asl.json"
LAMBDA_HICCUPS = ("ServiceException", "AWSLambdaException", "SdkClientException", "TooManyRequestsException")
RETRY_LAMBDA = [
    {
        "ErrorEquals": [f"Lambda.{name}" for name in LAMBDA_HICCUPS],
        "IntervalSeconds": 2,
        "MaxAttempts": 5,
        "BackoffRate": 2,
    }
]
TEAR_DOWN_SECONDS = 3600
"""The machine's own time-out is the longest job's time and this."""


def definition(longest_job_hours: int) -> str:
    """The machine, its retries filled in; ${...} are left for what the stack knows."""
    machine: dict[str, Any] = json.loads(DEFINITION.read_text(encoding="utf-8"))
    machine["TimeoutSeconds"] = longest_job_hours * 3600 + TEAR_DOWN_SECONDS
    for state in machine["States"].values():
        if "Retry" in state:
            state["Retry"] = RETRY_LAMBDA
    return json.dumps(machine)


@dataclass(frozen=True)
class Parts:
    """What the machine puts to work."""

    network: Network
    servers: Servers
    tensor_functions: TensorFunctions
    sweeper: Sweeper


class Orchestration(Construct):
    def __init__(self, scope: Construct, functions: JobFunctions, parts: Parts, code: Path) -> None:
        super().__init__(scope, "Orchestration")
        self._functions, self._parts = functions, parts
        places = {
            "DORYLUS_PLACES": Stack.of(self).to_json_string(parts.tensor_functions.places),
            "DORYLUS_TEMPLATES": Stack.of(self).to_json_string(parts.servers.template_places),
        }
        self.launch = functions.make(self, "launch_servers", code, seconds=90, environment=places)
        self._allow_launch(self.launch)
        self.collect = functions.make(self, "collect", code, seconds=30)
        self._allow_collect(self.collect)
        self.machine = self._machine()
        self._allow_machine()

    def _machine(self) -> stepfunctions.StateMachine:
        functions, context = self._functions, self._functions.context
        log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/vendedlogs/states/{context.name}-job",
            retention=log_retention(context),
            removal_policy=RemovalPolicy.DESTROY,
        )
        return stepfunctions.StateMachine(
            self,
            "Machine",
            state_machine_name=functions.machine_name,
            definition_body=stepfunctions.DefinitionBody.from_string(definition(context.limits.longest_job_hours)),
            definition_substitutions={
                "Launch": self.launch.function.function_arn,
                "Collect": self.collect.function.function_arn,
                "Sweep": self._parts.sweeper.sweep.function.function_arn,
                "JobsTable": functions.storage.jobs.table_name,
                "Topic": functions.topic.topic_arn,
            },
            logs=stepfunctions.LogOptions(destination=log_group, level=stepfunctions.LogLevel.ALL),
            tracing_enabled=True,
        )

    def _allow_machine(self) -> None:
        role = self.machine.role
        assert isinstance(role, iam.Role)
        steps = (self.launch, self.collect, self._parts.sweeper.sweep)
        allow(role, ["lambda:InvokeFunction"], [step.function.function_arn for step in steps])
        allow(role, ["dynamodb:UpdateItem"], [self._functions.storage.jobs.table_arn])
        allow(role, ["sns:Publish"], [self._functions.topic.topic_arn])
        tokens = [f"states:SendTask{word}" for word in ("Success", "Failure", "Heartbeat")]
        allow(self._parts.servers.role, tokens, [self._functions.machine_arn(self)])

    def _allow_launch(self, made: PythonFunction) -> None:
        """Instances come from our launch templates alone, into our subnets, with our role."""
        role, parts = made.role, self._parts
        allow(role, ["ec2:DescribeInstances"], ["*"])
        allow(
            role,
            ["iam:PassRole"],
            [parts.servers.role.role_arn],
            {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        )
        fixed = [
            *parts.servers.template_arns,
            *(own_arn(self, "ec2", f"subnet/{subnet.subnet_id}") for subnet in parts.network.subnets),
            own_arn(self, "ec2", f"security-group/{parts.network.servers.security_group_id}"),
        ]
        made_at_launch = [own_arn(self, "ec2", f"{kind}/*") for kind in ("instance", "network-interface", "volume")]
        image = f"arn:{made.function.stack.partition}:ec2:{made.function.stack.region}::image/*"
        ours = {"ArnEquals": {"ec2:LaunchTemplate": parts.servers.template_arns}}
        allow(role, ["ec2:CreateFleet"], [*fixed, own_arn(self, "ec2", "fleet/*"), *made_at_launch, image])
        allow(role, ["ec2:RunInstances"], [*fixed, *made_at_launch, image], ours)
        at_launch = {"StringEquals": {"ec2:CreateAction": ["CreateFleet", "RunInstances"]}}
        tagged = [own_arn(self, "ec2", f"{kind}/*") for kind in ("instance", "volume")]
        allow(role, ["ec2:CreateTags"], tagged, at_launch)
        allow_terminate(role, self, self._functions.context.name)
        # EC2 makes these roles of its own for an account's first fleet and first spot instance.
        theirs = {"ec2fleet": "AWSServiceRoleForEC2Fleet", "spot": "AWSServiceRoleForEC2Spot"}
        account = f"arn:{made.function.stack.partition}:iam::{made.function.stack.account}"
        linked = [f"{account}:role/aws-service-role/{service}.amazonaws.com/{name}" for service, name in theirs.items()]
        allow(role, ["iam:CreateServiceLinkedRole"], linked)
        allow(role, ["s3:ListBucket"], [self._functions.storage.bucket.bucket_arn], _prefix(GRAPHS))

    def _allow_collect(self, made: PythonFunction) -> None:
        bucket = self._functions.storage.bucket
        allow(made.role, ["s3:GetObject"], [bucket.arn_for_objects(f"{RUNS}*/summary.json")])
        allow(made.role, ["s3:ListBucket"], [bucket.bucket_arn], _prefix(RUNS))
        self._functions.may_write_status(made)


def _prefix(prefix: str) -> dict[str, dict[str, object]]:
    return {"StringLike": {"s3:prefix": [f"{prefix}*"]}}

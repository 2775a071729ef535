"""A Python function of ours: small, with a role and a log group of its own, both gone with the stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from common.cloud_names import STACK_TAG
from infra.context import Architecture, Context

RUNTIME = lambda_.Runtime.PYTHON_3_14
"""The Python that servers install: the same NumPy then, and so the same bits."""
ARCHITECTURES: Mapping[Architecture, lambda_.Architecture] = {
    "arm64": lambda_.Architecture.ARM_64,
    "x86_64": lambda_.Architecture.X86_64,
}


@dataclass(frozen=True)
class FunctionShape:
    """`name`: without the stack's; `handler`: module.function."""

    name: str
    handler: str
    code: Path
    environment: Mapping[str, str]
    seconds: int
    memory_mb: int = 256


@dataclass(frozen=True)
class VpcPlace:
    """Where a function has its network interface, for one that needs any."""

    vpc: ec2.IVpc
    subnet: ec2.ISubnet
    group: ec2.ISecurityGroup


class PythonFunction(Construct):
    def __init__(
        self, scope: Construct, context: Context, shape: FunctionShape, *, place: VpcPlace | None = None
    ) -> None:
        super().__init__(scope, shape.name)
        name = f"{context.name}-{shape.name}"
        log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/{context.name}/functions/{shape.name}",
            retention=log_retention(context),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        log_group.grant_write(self.role)
        if place is not None:
            self._enter_vpc(name)
        self.function = lambda_.Function(
            self,
            "Function",
            function_name=name,
            runtime=RUNTIME,
            architecture=ARCHITECTURES[context.function_architecture],
            code=lambda_.Code.from_asset(str(shape.code)),
            handler=shape.handler,
            role=self.role,
            environment=dict(shape.environment),
            timeout=Duration.seconds(shape.seconds),
            memory_size=shape.memory_mb,
            log_group=log_group,
            logging_format=lambda_.LoggingFormat.JSON,
            vpc=place.vpc if place else None,
            vpc_subnets=ec2.SubnetSelection(subnets=[place.subnet]) if place else None,
            security_groups=[place.group] if place else None,
        )

    def _enter_vpc(self, name: str) -> None:
        """The Lambda service makes the interface in the function's name; the function's own code may not."""
        allow(self.role, NETWORK_INTERFACES, ["*"])
        own_code = {"ArnEquals": {"lambda:SourceFunctionArn": own_arn(self, "lambda", f"function:{name}")}}
        self.role.add_to_policy(
            iam.PolicyStatement(
                effect=iam.Effect.DENY, actions=list(NETWORK_INTERFACES), resources=["*"], conditions=own_code
            )
        )


NETWORK_INTERFACES = (
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
)
"""What the Lambda service does in a function's name to put it into a VPC; it names no resources beforehand."""


def own_arn(scope: Construct, service: str, resource: str) -> str:
    """Of something of this account and region whose name is known beforehand."""
    stack = Stack.of(scope)
    return f"arn:{stack.partition}:{service}:{stack.region}:{stack.account}:{resource}"


def allow(
    role: iam.Role,
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Mapping[str, Mapping[str, object]] | None = None,
) -> None:
    role.add_to_policy(
        iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=dict(conditions or {}))
    )


def allow_terminate(role: iam.Role, scope: Construct, stack: str) -> None:
    """Instances of this stack, and no others."""
    ours = {"StringEquals": {f"ec2:ResourceTag/{STACK_TAG}": stack}}
    allow(role, ["ec2:TerminateInstances"], [own_arn(scope, "ec2", "instance/*")], ours)


def log_retention(context: Context) -> logs.RetentionDays:
    return {
        1: logs.RetentionDays.ONE_DAY,
        3: logs.RetentionDays.THREE_DAYS,
        5: logs.RetentionDays.FIVE_DAYS,
        7: logs.RetentionDays.ONE_WEEK,
        14: logs.RetentionDays.TWO_WEEKS,
        30: logs.RetentionDays.ONE_MONTH,
        60: logs.RetentionDays.TWO_MONTHS,
        90: logs.RetentionDays.THREE_MONTHS,
        120: logs.RetentionDays.FOUR_MONTHS,
        150: logs.RetentionDays.FIVE_MONTHS,
        180: logs.RetentionDays.SIX_MONTHS,
        365: logs.RetentionDays.ONE_YEAR,
    }[context.log_days]

"""Graph servers and parameter servers: one launch template per architecture, for both, for which of them an instance
becomes is decided when it has started. Nothing here costs anything until a job's state machine asks for a fleet.
"""

from collections.abc import Mapping
from pathlib import Path

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from common.allocator import MALLOC
from common.cloud_names import DATASETS, GRAPHS, RUNS, SERVER_PORT, STACK_TAG
from infra.context import Architecture, Context
from infra.network import Network
from infra.python_function import allow, log_retention, own_arn
from infra.storage import Storage

CPU = {"arm64": ec2.AmazonLinuxCpuType.ARM_64, "x86_64": ec2.AmazonLinuxCpuType.X86_64}
BOOT = """#!/bin/bash
# Whatever fails below, this instance does not live for ever: the power-off is called off by what replaces it.
shutdown -P +30 'dorylus: the boot did not finish'
set -euo pipefail
mkdir -p /etc/dorylus /opt/dorylus/server
cat > /etc/dorylus/environment <<'END'
{environment}
END
set -a; source /etc/dorylus/environment; set +a
aws s3 cp --only-show-errors 's3://{bucket}/{key}' /opt/dorylus/server.zip
cd /opt/dorylus/server
python3 -m zipfile -e ../server.zip .
exec bash boot/install.sh
"""


class Servers(Construct):
    """`code`: architecture -> folder with boot/ and wheels/."""

    def __init__(
        self, scope: Construct, context: Context, network: Network, storage: Storage, code: Mapping[Architecture, Path]
    ) -> None:
        super().__init__(scope, "Servers")
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/{context.name}/servers",
            retention=log_retention(context),
            removal_policy=RemovalPolicy.DESTROY,
        )
        self._context, self._network, self._storage = context, network, storage
        self._allow_what_servers_do()
        self.templates = {architecture: self._template(architecture, folder) for architecture, folder in code.items()}

    @property
    def template_places(self) -> dict[str, dict[str, str]]:
        """As DORYLUS_TEMPLATES has them."""
        return {
            architecture: {"id": _id(template), "version": template.latest_version_number}
            for architecture, template in self.templates.items()
        }

    @property
    def template_arns(self) -> list[str]:
        return [own_arn(self, "ec2", f"launch-template/{_id(template)}") for template in self.templates.values()]

    def _template(self, architecture: Architecture, folder: Path) -> ec2.LaunchTemplate:
        asset = s3_assets.Asset(self, f"Code-{architecture}", path=str(folder))
        allow(self.role, ["s3:GetObject"], [asset.bucket.arn_for_objects(asset.s3_object_key)])
        words = BOOT.format(
            environment="\n".join(f"{name}={value}" for name, value in self._environment().items()),
            bucket=asset.s3_bucket_name,
            key=asset.s3_object_key,
        )
        encrypted = ec2.BlockDeviceVolume.ebs(
            self._context.disk_gb, encrypted=True, volume_type=ec2.EbsDeviceVolumeType.GP3, delete_on_termination=True
        )
        template = ec2.LaunchTemplate(
            self,
            f"Template-{architecture}",
            launch_template_name=f"{self._context.name}-{architecture}",
            machine_image=ec2.MachineImage.latest_amazon_linux2023(cpu_type=CPU[architecture]),
            user_data=ec2.UserData.custom(words),
            role=self.role,
            security_group=self._network.servers,
            block_devices=[ec2.BlockDevice(device_name="/dev/xvda", volume=encrypted)],
            require_imdsv2=True,
            http_put_response_hop_limit=1,
            instance_metadata_tags=True,
            instance_initiated_shutdown_behavior=ec2.InstanceInitiatedShutdownBehavior.TERMINATE,
        )
        # An instance's tags come from the fleet's request; one that stands in both places may be refused.
        volume_tags = [{"Key": STACK_TAG, "Value": self._context.name}]
        plain = template.node.default_child
        assert isinstance(plain, ec2.CfnLaunchTemplate)
        plain.add_property_override(
            "LaunchTemplateData.TagSpecifications", [{"ResourceType": "volume", "Tags": volume_tags}]
        )
        return template

    def _environment(self) -> dict[str, str]:
        """Of every unit of an instance; nothing secret."""
        storage = self._storage
        by_ipv6 = self._context.endpoints == "egress"
        return {
            "DORYLUS_STACK": self._context.name,
            "DORYLUS_BUCKET": storage.bucket.bucket_name,
            "DORYLUS_JOBS_TABLE": storage.jobs.table_name,
            "DORYLUS_MEMBERS_TABLE": storage.members.table_name,
            "DORYLUS_LOG_GROUP": self.log_group.log_group_name,
            "DORYLUS_PORT": str(SERVER_PORT),
            "DORYLUS_DISK_GB": str(self._context.disk_gb),
            "DORYLUS_PRIVATE_ENDPOINTS": str(self._network.private_endpoints),
            "DORYLUS_FUNCTION_ARCHITECTURE": self._context.function_architecture,
            "AWS_DEFAULT_REGION": self.log_group.env.region,
            "AWS_USE_DUALSTACK_ENDPOINT": str(by_ipv6).lower(),
            "OPENBLAS_NUM_THREADS": "1",
            **MALLOC,
        }

    def _allow_what_servers_do(self) -> None:
        """Every server has one role, so each may do what any has to; a job may read another job's run folder."""
        role, bucket = self.role, self._storage.bucket
        others = self._context.limits.dataset_buckets
        readable = [bucket.arn_for_objects(f"{prefix}*") for prefix in (DATASETS, GRAPHS, RUNS)]
        elsewhere = [f"arn:{self.role.stack.partition}:s3:::{name}" for name in others]
        allow(role, ["s3:GetObject"], [*readable, *(f"{arn}/*" for arn in elsewhere)])
        allow(
            role, ["s3:PutObject", "s3:AbortMultipartUpload"], [bucket.arn_for_objects(f"{p}*") for p in (GRAPHS, RUNS)]
        )
        allow(role, ["s3:DeleteObject"], [bucket.arn_for_objects(f"{RUNS}*/checkpoints/*")])
        # The whole of it: to who may list a part alone, S3 says "forbidden" of a key that is not there.
        allow(role, ["s3:ListBucket"], [bucket.bucket_arn])
        if elsewhere:
            allow(role, ["s3:ListBucket"], elsewhere)
        allow(role, ["dynamodb:GetItem", "dynamodb:UpdateItem"], [self._storage.jobs.table_arn])
        actions = ("PutItem", "UpdateItem", "Query")
        allow(role, [f"dynamodb:{action}" for action in actions], [self._storage.members.table_arn])
        keys = own_arn(self, "ssm", f"parameter/{self._context.name}/jobs/*")
        allow(role, ["ssm:GetParameter", "ssm:PutParameter"], [keys])
        streams = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
        allow(role, streams, [self.log_group.log_group_arn])
        # Sessions for people; what the agent has to do for that names no resources.
        channels = ("CreateControlChannel", "CreateDataChannel", "OpenControlChannel", "OpenDataChannel")
        allow(role, ["ssm:UpdateInstanceInformation", *(f"ssmmessages:{channel}" for channel in channels)], ["*"])


def _id(template: ec2.LaunchTemplate) -> str:
    assert template.launch_template_id is not None
    return template.launch_template_id

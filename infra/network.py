"""Where jobs run: private subnets that nothing reaches from outside, and that cost nothing while they are empty.

egress    IPv6 out through an egress-only internet gateway, S3 and DynamoDB through gateway endpoints: all free
private   no way out at all; AWS's services through interface endpoints, which are billed by the hour and zone
"""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Fn, Tags
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from common.cloud_names import SERVER_PORT, STACK_TAG
from infra.context import Context

PRIVATE_SERVICES: Final = ("ssm", "ssmmessages", "states", "lambda", "logs")
"""What a server asks beside S3 and DynamoDB: keys and sessions, task tokens, functions, logs."""


class Network(Construct):
    """`servers` and `functions` are the security groups; what they let in is said here and nowhere else."""

    def __init__(self, scope: Construct, context: Context) -> None:
        super().__init__(scope, "Network")
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_protocol=ec2.IpProtocol.DUAL_STACK,
            availability_zones=[Fn.select(number, Fn.get_azs()) for number in range(context.zones)],
            nat_gateways=0,
            restrict_default_security_group=False,  # it would take a function of its own, and nothing is ever in it
            subnet_configuration=[
                ec2.SubnetConfiguration(name="servers", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=20)
            ],
            gateway_endpoints={
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
                "DynamoDB": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.DYNAMODB),
            },
        )
        Tags.of(self.vpc).add(STACK_TAG, context.name)
        self.functions = self._group("Functions", "tensor functions: they dial out, and only to servers")
        self.servers = self._group("Servers", "graph servers and parameter servers")
        self._who_may_talk()
        if context.endpoints == "egress":
            self._ipv6_out()
        else:
            self._interface_endpoints()

    @property
    def subnets(self) -> Sequence[ec2.ISubnet]:
        """One per zone."""
        return self.vpc.isolated_subnets

    @property
    def private_endpoints(self) -> int:
        """Interface endpoints, each counted in each of its zones."""
        found = [one for one in self.node.children if isinstance(one, ec2.InterfaceVpcEndpoint)]
        return len(found) * len(self.subnets)

    def _group(self, name: str, description: str) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(
            self, name, vpc=self.vpc, description=description, allow_all_outbound=False, allow_all_ipv6_outbound=False
        )

    def _who_may_talk(self) -> None:
        port = ec2.Port.tcp(SERVER_PORT)
        self.servers.connections.allow_from(self.functions, port, "a lease dials its servers")
        self.servers.connections.allow_internally(port, "servers of a job")
        # By IPv4 there is no route but that to the gateway endpoints, whose addresses no template knows beforehand.
        self.servers.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "S3 and DynamoDB by gateway endpoints")

    def _ipv6_out(self) -> None:
        for number, subnet in enumerate(self.subnets, 1):
            ec2.CfnRoute(
                self,
                f"Ipv6Out{number}",
                route_table_id=subnet.route_table.route_table_id,
                destination_ipv6_cidr_block="::/0",
                egress_only_internet_gateway_id=self._egress_only.ref,
            )
        self.servers.add_egress_rule(ec2.Peer.any_ipv6(), ec2.Port.tcp(443), "dual-stack endpoints of AWS services")

    @property
    def _egress_only(self) -> ec2.CfnEgressOnlyInternetGateway:
        """Of every VPC of two stacks; without a route to it nothing goes out."""
        (found,) = (one for one in self.vpc.node.children if isinstance(one, ec2.CfnEgressOnlyInternetGateway))
        return found

    def _interface_endpoints(self) -> None:
        group = self._group("Endpoints", "interface endpoints of AWS services")
        group.connections.allow_from(self.servers, ec2.Port.tcp(443), "servers ask AWS's services")
        for name in PRIVATE_SERVICES:
            ec2.InterfaceVpcEndpoint(
                self,
                f"Endpoint-{name}",
                vpc=self.vpc,
                service=ec2.InterfaceVpcEndpointAwsService(name),
                subnets=ec2.SubnetSelection(subnets=list(self.subnets)),
                security_groups=[group],
                open=False,
            )

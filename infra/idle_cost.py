"""What the deployed stack costs while no job runs, read from its template: by the hour, and what is billed otherwise.

Every type of resource that the template has must be known here; one that is not is an error, so that nothing with an
hourly price slips in. `python -m infra.idle_cost` prints the table of docs/deploy/costs.md.
"""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.errors import ClusterError
from common.price_table import US_EAST_1, PriceTable

FREE_DASHBOARDS: Final = 3
FREE_ALARMS: Final = 10
ALARM_MONTH: Final = 0.10
DASHBOARD_MONTH: Final = 3.00
"""USD. Source: https://aws.amazon.com/cloudwatch/pricing/, free tier and paid tier."""
MONTH_HOURS: Final = 730


def _after(free: int, month: float) -> str:
    return f"none: an account's first {free} are free, then ${month:.2f} a month each"


BILLED_OTHERWISE: Final[Mapping[str, str]] = {
    "AWS::CloudWatch::Alarm": _after(FREE_ALARMS, ALARM_MONTH),
    "AWS::CloudWatch::Dashboard": _after(FREE_DASHBOARDS, DASHBOARD_MONTH),
    "AWS::DynamoDB::Table": "requests, and bytes stored",
    "AWS::EC2::EgressOnlyInternetGateway": "none; traffic out of AWS by the byte",
    "AWS::EC2::LaunchTemplate": "none; its instances and their disks, while a job runs",
    "AWS::EC2::VPCEndpoint": "gateway: none; interface: by the hour and zone, and by the byte",
    "AWS::Events::Rule": "none: events of AWS's own services are free",
    "AWS::Lambda::Function": "invocations",
    "AWS::Logs::LogGroup": "bytes taken in, and bytes stored",
    "AWS::S3::Bucket": "requests, and bytes stored",
    "AWS::SNS::Subscription": "mails, an account's first 1000 a month are free",
    "AWS::SNS::Topic": "messages",
    "AWS::StepFunctions::StateMachine": "steps, about ten a job",
}
NEVER_BILLED: Final = frozenset(
    {
        "AWS::CDK::Metadata",
        "AWS::EC2::Route",
        "AWS::EC2::RouteTable",
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::Subnet",
        "AWS::EC2::SubnetRouteTableAssociation",
        "AWS::EC2::VPC",
        "AWS::EC2::VPCCidrBlock",
        "AWS::IAM::InstanceProfile",
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
        "AWS::Lambda::Permission",
        "AWS::S3::BucketPolicy",
        "AWS::SNS::TopicPolicy",
    }
)


@dataclass(frozen=True)
class IdleCost:
    kind: str
    count: int
    usd_per_hour: float
    otherwise: str


def idle_costs(template: Mapping[str, Any], prices: PriceTable = US_EAST_1) -> list[IdleCost]:
    """Of every type of resource that can cost anything, sorted. Raises ClusterError for a type that is not known."""
    resources = template["Resources"].values()
    counts = Counter(resource["Type"] for resource in resources)
    if unknown := sorted(set(counts) - set(BILLED_OTHERWISE) - NEVER_BILLED):
        raise ClusterError(
            f"no price is known for {', '.join(unknown)}",
            why="a stack whose idle cost is stated must not hold what nobody has looked up",
            fix="add it to infra/idle_cost.py, with what it costs",
        )
    more_alarms = max(0, counts["AWS::CloudWatch::Alarm"] - FREE_ALARMS)
    more_dashboards = max(0, counts["AWS::CloudWatch::Dashboard"] - FREE_DASHBOARDS)
    hourly = {
        "AWS::EC2::VPCEndpoint": _endpoint_zones(template) * prices.interface_endpoint_hour,
        "AWS::CloudWatch::Alarm": more_alarms * ALARM_MONTH / MONTH_HOURS,
        "AWS::CloudWatch::Dashboard": more_dashboards * DASHBOARD_MONTH / MONTH_HOURS,
    }
    return [
        IdleCost(kind, counts[kind], hourly.get(kind, 0.0), BILLED_OTHERWISE[kind])
        for kind in sorted(BILLED_OTHERWISE)
        if counts[kind]
    ]


def as_table(costs: list[IdleCost]) -> str:
    """Markdown."""
    lines = ["| resource | number | $ an hour, idle | is billed for |", "|---|---|---|---|"]
    lines += [
        f"| {cost.kind.removeprefix('AWS::')} | {cost.count} | {cost.usd_per_hour:g} | {cost.otherwise} |"
        for cost in costs
    ]
    total = sum(cost.usd_per_hour for cost in costs)
    return "\n".join([*lines, f"| **all** | | **{total:g}** | |"])


def _endpoint_zones(template: Mapping[str, Any]) -> int:
    """Interface endpoints, each counted once for every zone it stands in."""
    return sum(
        len(resource["Properties"].get("SubnetIds", ()))
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::EC2::VPCEndpoint" and resource["Properties"].get("VpcEndpointType") == "Interface"
    )


def main() -> None:
    """Of a template on stdin: cdk synth --json | python -m infra.idle_cost"""
    import json

    sys.stdout.write(as_table(idle_costs(json.load(sys.stdin))) + "\n")


if __name__ == "__main__":
    main()

"""The synthesised template in moto's CloudFormation: what has to be taken out first, and what moto does not make.

The list is the one of docs/deploy/deploy.md, where each type has its place: a test that deploys compares.
"""

import re
from collections.abc import Mapping
from typing import Any

import boto3

from infra.closure import ROOT

PAGE = ROOT / "docs" / "deploy" / "deploy.md"
HEADING = "## What moto leaves out"


def left_out() -> set[str]:
    """Types, as the page lists them."""
    _, _, section = PAGE.read_text(encoding="utf-8").partition(HEADING)
    return {f"AWS::{name}" for name in re.findall(r"^\| `(\w+::\w+)` \|", section.partition("\n## ")[0], re.MULTILINE)}


def not_made(template: Mapping[str, Any], stack: str) -> set[str]:
    """Types of the template of which the stack that was deployed has none."""
    listed = boto3.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=stack)
    made = {one["ResourceType"] for page in listed for one in page["StackResourceSummaries"]}
    return {one["Type"] for one in template["Resources"].values()} - made


def without_ipv6(template: dict[str, Any]) -> dict[str, Any]:
    """A VPC of moto's has no IPv6 block to cut subnets from."""
    resources = {name: {**one} for name, one in template["Resources"].items()}
    for one in resources.values():
        if one["Type"] == "AWS::EC2::Subnet":
            kept = {name: value for name, value in one["Properties"].items() if "Ipv6" not in name}
            one["Properties"] = kept
    return {**template, "Resources": resources}

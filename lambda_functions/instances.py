"""The instances of jobs, known by their tags."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import boto3

from common.cloud_names import GENERATION_TAG, JOB_TAG, PHASE_TAG, STACK_TAG

THERE = ("pending", "running", "stopping", "stopped")


@dataclass(frozen=True)
class Instance:
    id: str
    job_id: str
    fleet: str
    """Phase and generation."""


def fleet_name(phase: str, generation: int | str) -> str:
    return f"{phase} {generation}"


def instances(stack: str, job_id: str | None = None) -> list[Instance]:
    """Those that are not terminated: of one job, or of all of the stack's."""
    filters = [
        {"Name": f"tag:{STACK_TAG}", "Values": [stack]},
        {"Name": "instance-state-name", "Values": list(THERE)},
    ]
    if job_id is not None:
        filters.append({"Name": f"tag:{JOB_TAG}", "Values": [job_id]})
    pages = boto3.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    return [
        _instance(found) for page in pages for reservation in page["Reservations"] for found in reservation["Instances"]
    ]


def terminate(ids: Iterable[str]) -> int:
    """How many there were."""
    doomed = list(ids)
    if doomed:
        boto3.client("ec2").terminate_instances(InstanceIds=doomed)
    return len(doomed)


def terminate_job(stack: str, job_id: str, *, except_fleet: str = "") -> int:
    return terminate(one.id for one in instances(stack, job_id) if one.fleet != except_fleet)


def _instance(found: Mapping[str, Any]) -> Instance:
    tags = {tag["Key"]: tag["Value"] for tag in found.get("Tags", [])}
    fleet = fleet_name(tags.get(PHASE_TAG, ""), tags.get(GENERATION_TAG, ""))
    return Instance(found["InstanceId"], tags.get(JOB_TAG, ""), fleet)

"""A fleet: all the servers of a job in one zone and of one type, or none of them.

EC2 is asked for an `instant` fleet with a least size equal to its size, so that it launches none rather than some; what
comes back is counted all the same, and a fleet that is short is terminated.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.cloud_names import GENERATION_TAG, JOB_TAG, PHASE_TAG, STACK_TAG, Phase
from lambda_functions.stack_settings import Place, Template


@dataclass(frozen=True)
class Wanted:
    stack: str
    job_id: str
    phase: Phase
    generation: int
    num_servers: int
    spot: bool


@dataclass(frozen=True)
class Attempt:
    """Where and with what it is tried."""

    place: Place
    instance_type: str
    template: Template

    def __str__(self) -> str:
        return f"{self.instance_type} in {self.place.zone}"


@dataclass(frozen=True)
class Launched:
    instances: tuple[str, ...]
    refusals: tuple[str, ...]
    """AWS's words."""


def fleet_request(wanted: Wanted, attempt: Attempt) -> dict[str, Any]:
    """Of ec2:CreateFleet. The same wish has the same token: asked again, EC2 answers again and launches no more."""
    market = "spot" if wanted.spot else "on-demand"
    whole = {"SingleInstanceType": True, "SingleAvailabilityZone": True, "MinTargetCapacity": wanted.num_servers}
    tags = {
        STACK_TAG: wanted.stack,
        JOB_TAG: wanted.job_id,
        GENERATION_TAG: str(wanted.generation),
        PHASE_TAG: wanted.phase.value,
        "Name": f"{wanted.stack} {wanted.job_id}",
    }
    return {
        "ClientToken": _token(wanted, attempt),
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {
                    "LaunchTemplateId": attempt.template.id,
                    "Version": attempt.template.version,
                },
                "Overrides": [{"InstanceType": attempt.instance_type, "SubnetId": attempt.place.subnet}],
            }
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": wanted.num_servers,
            "DefaultTargetCapacityType": market,
        },
        "SpotOptions" if wanted.spot else "OnDemandOptions": whole,
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ],
    }


def launched(answer: Mapping[str, Any]) -> Launched:
    """What an answer of ec2:CreateFleet says."""
    instances = tuple(each for group in answer.get("Instances", ()) for each in group.get("InstanceIds", ()))
    words = [f"{one.get('ErrorCode', 'error')}: {one.get('ErrorMessage', '')}" for one in answer.get("Errors", ())]
    return Launched(instances, tuple(dict.fromkeys(words)))


def _token(wanted: Wanted, attempt: Attempt) -> str:
    parts = (wanted.job_id, wanted.phase, str(wanted.generation), attempt.instance_type, attempt.place.subnet)
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:64]

"""What a function of the job's machinery knows of its stack, from its environment: read once per invocation, frozen.

docs/deploy/contract.md lists the variables. A function that has no business with a thing is not told of it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VARIABLES = {
    "stack": "DORYLUS_STACK",
    "bucket": "DORYLUS_BUCKET",
    "jobs_table": "DORYLUS_JOBS_TABLE",
    "members_table": "DORYLUS_MEMBERS_TABLE",
    "state_machine": "DORYLUS_STATE_MACHINE",
    "sweep_rule": "DORYLUS_SWEEP_RULE",
    "topic": "DORYLUS_TOPIC",
}


@dataclass(frozen=True)
class Place:
    """An availability zone that a job may stand in: its subnet, and the tensor function that stands there too."""

    zone: str
    subnet: str
    function: str


@dataclass(frozen=True)
class Template:
    """A launch template."""

    id: str
    version: str


@dataclass(frozen=True)
class Limits:
    """Guard rails of the deployment."""

    instance_types: tuple[str, ...]
    most_servers: int
    most_lambdas: int
    dearest_job_usd: float
    longest_job_hours: int
    dataset_buckets: tuple[str, ...]
    function_memory_mb: int


@dataclass(frozen=True)
class StackSettings:
    stack: str
    bucket: str
    jobs_table: str
    members_table: str
    state_machine: str
    sweep_rule: str
    topic: str
    places: tuple[Place, ...]
    templates: Mapping[str, Template]
    """Architecture -> launch template."""
    limits: Limits | None

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "StackSettings":
        texts = {field: environment.get(variable, "") for field, variable in VARIABLES.items()}
        places = tuple(Place(**place) for place in _json(environment, "DORYLUS_PLACES", []))
        templates = {name: Template(**one) for name, one in _json(environment, "DORYLUS_TEMPLATES", {}).items()}
        limits = _json(environment, "DORYLUS_LIMITS", None)
        return cls(**texts, places=places, templates=templates, limits=_limits(limits) if limits else None)


def _json(environment: Mapping[str, str], variable: str, otherwise: object) -> Any:
    return json.loads(environment[variable]) if variable in environment else otherwise


def _limits(values: dict[str, Any]) -> Limits:
    lists = {name: tuple(values[name]) for name in ("instance_types", "dataset_buckets")}
    return Limits(**{**values, **lists})

"""The deployer's choices: typed, checked, each with a default. `cdk deploy -c dorylus:zones=2`.

Values come as text from the command line and as JSON from cdk.json; both are coerced. All keys begin with `dorylus:`:
so a misspelt one of ours can be told from the CDK's own, and is refused.
"""

import difflib
import re
from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from common.errors import SpecError

PREFIX = "dorylus:"
Architecture = Literal["arm64", "x86_64"]
LOG_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365)
"""What CloudWatch takes."""


class Limits(BaseModel):
    """Guard rails: whoever may write to jobs/ spends money. The job trigger holds every spec against them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    instance_types: tuple[str, ...] = ("c6g.*", "c6i.*", "c7a.*", "c7g.*", "c7i.*", "c8g.*", "m7g.*", "m7i.*", "r7g.*")
    """Patterns of the instance types a job may ask for."""
    most_servers: int = Field(16, ge=1, le=1000)
    """Graph servers and parameter servers of a job, together."""
    most_lambdas: int = Field(400, ge=1, le=10_000)
    dearest_job_usd: float = Field(20.0, gt=0)
    """Budget of a job that names none, and the most that one may name."""
    longest_job_hours: int = Field(48, ge=1, le=24 * 30)
    dataset_buckets: tuple[str, ...] = ()
    """Buckets beside ours that a dataset may come from."""


class Context(BaseModel):
    """One deployment. `name` begins every name, so that an account may hold several."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "dorylus"
    zones: int = Field(3, ge=1, le=6)
    """Availability zones to choose from; a job stands in one."""
    endpoints: Literal["egress", "private"] = "egress"
    """egress: AWS's services are reached over IPv6, free of charge; private: over interface endpoints, by the hour."""
    function_architecture: Architecture = "arm64"
    function_memory_mb: int = Field(1769, ge=128, le=10_240)
    """Of the tensor functions; 1769 MB is one CPU. A spec's backend.memory_mb has to be this."""
    disk_gb: int = Field(100, ge=16, le=16_384)
    """Of each server."""
    log_days: int = 30
    old_version_days: int = Field(7, ge=1)
    """How long the bucket keeps what was overwritten or deleted."""
    dashboard: bool = True
    notify_email: str = ""
    """Who hears of a job's end; nobody by default."""
    limits: Limits = Limits()

    @field_validator("name")
    @classmethod
    def _short_and_plain(cls, name: str) -> str:
        if not re.fullmatch("[a-z][a-z0-9-]{0,19}", name):
            raise ValueError("must be 1 to 20 lower case letters, digits or '-', a letter first")
        return name

    @field_validator("log_days")
    @classmethod
    def _as_cloudwatch_counts(cls, days: int) -> int:
        if days not in LOG_DAYS:
            raise ValueError(f"must be one of {', '.join(map(str, LOG_DAYS))}")
        return days

    @field_validator("notify_email")
    @classmethod
    def _an_address(cls, text: str) -> str:
        if text and not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", text):
            raise ValueError("must be an e-mail address")
        return text

    @classmethod
    def read(cls, values: Mapping[str, object]) -> Self:
        """From the CDK's context. Raises SpecError that says everything that is wrong."""
        ours = {key.removeprefix(PREFIX): value for key, value in values.items() if key.startswith(PREFIX)}
        limits = {name: _listed(name, ours.pop(name)) for name in Limits.model_fields if name in ours}
        try:
            return cls.model_validate({**ours, **({"limits": limits} if limits else {})}, strict=False)
        except ValidationError as error:
            raise SpecError("\n".join(_said(one["loc"], one["msg"]) for one in error.errors())) from None


def _listed(name: str, value: object) -> object:
    """On the command line a list is text with commas."""
    is_list = Limits.model_fields[name].annotation == tuple[str, ...]
    if not is_list or not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _said(place: tuple[int | str, ...], message: str) -> str:
    key = str(place[-1])
    known = [*Context.model_fields, *Limits.model_fields]
    if key in known:
        return f"{PREFIX}{key}: {message}"
    near = difflib.get_close_matches(key, known, n=1)
    return f"{PREFIX}{key} is not known: " + (f"did you mean {PREFIX}{near[0]}?" if near else ", ".join(known))

"""What the local Lambda service is told: its functions, its limits, its faults. Frozen; a JSON file holds the same.

The limits are those of AWS (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html) but for
concurrency, which is what one machine can bear, and for the size of an event, which AWS raised to 1 MB in October 2025:
what passes here passes there.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from common.errors import SpecError

Probability = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0)]

RESERVED = ("_HANDLER", "_X_AMZN_TRACE_ID", "LAMBDA_RUNTIME_DIR", "LAMBDA_TASK_ROOT")
RESERVED_PREFIX = "AWS_LAMBDA_"


class FunctionConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One function, as it would be created on AWS."""

    name: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
    handler: str
    """MODULE.FUNCTION, the module as seen from `task_root`."""
    task_root: str
    """The folder of the function's code: its working folder, on its path."""
    memory_mb: Annotated[int, Meta(ge=128, le=10240)] = 1769
    timeout_seconds: Annotated[float, Meta(gt=0, le=900)] = 300
    environment: dict[str, str] = {}
    """On top of what every function has (worker_environment.py); nothing else reaches a worker."""


class Faults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bad luck on demand. The same seed gives the same row of decisions, one per invocation and kind."""

    crash_probability: Probability = 0.0
    """The worker is killed while it works."""
    crash_within_seconds: Seconds = 0.05
    """How long after it got the invocation, at most; one that is done by then is spared."""
    throttle_probability: Probability = 0.0
    cold_start_seconds: Seconds = 0.0
    """Added before a worker starts; not billed, as on AWS."""
    seed: int = 0


class ServiceConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole service."""

    functions: tuple[FunctionConfig, ...]
    concurrency: Annotated[int, Meta(ge=1)] = 16
    """Invocations in flight, over all functions; one more is throttled."""
    event_queue: Annotated[int, Meta(ge=1)] = 1000
    """Events that wait for a free place; one more is throttled."""
    event_bytes: Annotated[int, Meta(ge=1)] = 256 * 1024
    idle_seconds: Annotated[float, Meta(gt=0)] = 300
    """A worker without work ends after this."""
    init_seconds: Annotated[float, Meta(gt=0)] = 10
    """A function's start may take this long."""
    freeze_idle: bool = True
    """Between invocations a worker stands still (SIGSTOP), threads and all, as a function does on AWS."""
    runtime: Literal["auto", "awslambdaric", "pure_python"] = "auto"
    """Who speaks with the Runtime API in a worker; auto: awslambdaric where it is installed."""
    records: Annotated[int, Meta(ge=0)] = 10_000
    """Invocations of which the meter remembers each; the totals count all."""
    faults: Faults = Faults()


def checked(config: ServiceConfig) -> ServiceConfig:
    """The same, or SpecError: struct constructors check nothing."""
    try:
        config = msgspec.convert(msgspec.to_builtins(config), ServiceConfig)
    except msgspec.ValidationError as error:
        raise SpecError(f"the local Lambda service cannot be set up: {error}") from error
    _check_names(config)
    for function in config.functions:
        _check_environment(function)
        if not Path(function.task_root).is_dir():
            raise SpecError(
                f"function {function.name!r} has no folder {function.task_root}", fix="name the folder of its code"
            )
    return config


def read_config(file: Path) -> ServiceConfig:
    """From a JSON file; SpecError says what is wrong in it."""
    try:
        return checked(msgspec.json.decode(file.read_bytes(), type=ServiceConfig))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"{file} is not a configuration of the local Lambda service: {error}") from error


def _check_names(config: ServiceConfig) -> None:
    names = [function.name for function in config.functions]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise SpecError(
            f"two functions are named {double[0]!r}", why="an invocation names its function", fix="rename one"
        )


def _check_environment(function: FunctionConfig) -> None:
    taken = sorted(key for key in function.environment if key in RESERVED or key.startswith(RESERVED_PREFIX))
    if taken:
        raise SpecError(
            f"function {function.name!r} sets {', '.join(taken)}",
            why="Lambda sets these itself and refuses a function that does",
            fix="remove them from its environment",
        )

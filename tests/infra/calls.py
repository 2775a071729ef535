"""What a function of ours asks of AWS, as it leaves boto3: who, which operation, with which parameters."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import boto3

_ACTING: ContextVar[str] = ContextVar("acting", default="")


@dataclass(frozen=True)
class Call:
    """service: as boto3 calls it; asked: the parameters as JSON."""

    service: str
    operation: str
    asked: str = "{}"

    @classmethod
    def of(cls, service: str, operation: str, params: Mapping[str, Any]) -> "Call":
        plain = {name: value for name, value in params.items() if name != "Body"}
        return cls(service, operation, json.dumps(plain, sort_keys=True, default=str))

    @property
    def params(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.asked)
        return found


Calls = defaultdict[str, set[Call]]
"""Function, or SERVERS -> its calls."""


@contextmanager
def acting_as(function: str) -> Iterator[None]:
    """What is asked in this block, by this thread, is the function's; all else is the test's own."""
    token = _ACTING.set(function)
    try:
        yield
    finally:
        _ACTING.reset(token)


@contextmanager
def recording() -> Iterator[Calls]:
    """Of boto3's default session, which functions use."""
    calls: Calls = defaultdict(set)

    def hear(params: Mapping[str, Any], model: Any, **_: object) -> None:
        if function := _ACTING.get():
            calls[function].add(Call.of(model.service_model.service_name, model.name, params))

    boto3.setup_default_session()
    assert boto3.DEFAULT_SESSION is not None
    boto3.DEFAULT_SESSION.events.register("before-parameter-build", hear)
    try:
        yield calls
    finally:
        boto3.setup_default_session()

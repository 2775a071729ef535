"""Runs a step of the ingest that may refuse, and finds out what would get past each refusal, by trying it.

A step with a remedy is run again with it, so that what stands behind the first error is found too.
"""

import re
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.doctor.diagnosis import Finding, Level

T = TypeVar("T")
_MENTIONED = re.compile(r"dataset\.\w+: \w+")


class Remedy(NamedTuple):
    """A key of the spec's dataset group, and a value for it."""

    key: str
    value: str | bool

    def __str__(self) -> str:
        return f"dataset.{self.key}: {str(self.value).lower() if isinstance(self.value, bool) else self.value}"


class Attempt(NamedTuple, Generic[T]):
    """value: what the step gave, with the remedies in `options`; None if none helped."""

    value: T | None
    findings: tuple[Finding, ...]
    options: DatasetSpec


def attempt(
    code: str, step: Callable[[DatasetSpec], T], options: DatasetSpec, remedies: Sequence[Remedy] = ()
) -> Attempt[T]:
    findings: list[Finding] = []
    while True:
        try:
            return Attempt(step(options), tuple(findings), options)
        except DatasetError as error:
            ways = [remedy for remedy in remedies if _gets_past(error, step, options, remedy)]
            findings.append(refusal(code, error, [str(way) for way in ways]))
            if not ways:
                return Attempt(None, tuple(findings), options)
            options = _with(options, ways[0])
            remedies = [remedy for remedy in remedies if remedy.key != ways[0].key]


def refusal(code: str, error: DatasetError, options: Sequence[str] = ()) -> Finding:
    """`options`: what was tried and helps; else what the error itself names."""
    named = tuple(options) or tuple(_MENTIONED.findall(error.fix))
    return Finding(code=code, level=Level.REFUSED, what=error.what, why=error.why, fix=error.fix, options=named)


def _with(options: DatasetSpec, remedy: Remedy) -> DatasetSpec:
    return options.model_copy(update={remedy.key: remedy.value})


def _gets_past(error: DatasetError, step: Callable[[DatasetSpec], T], options: DatasetSpec, remedy: Remedy) -> bool:
    changed = _with(options, remedy)
    if changed == options:
        return False
    try:
        step(changed)
    except DatasetError as other:
        return other.what != error.what
    return True

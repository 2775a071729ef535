"""The trace, as JSON lines: a record per step of an interval, and one per decision about leases.

All times are seconds since the job began.
"""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec


class StepRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """created = decided, started = its work began, ended = its work ended, received = its result was taken."""

    pass_: str = msgspec.field(name="pass")
    step: str
    position: int
    interval: int
    server: int
    backend: str = ""
    """Where a tensor task ran; empty for graph steps."""
    attempt: int = 1
    created: float
    started: float
    ended: float
    received: float
    constants: int = 0
    """Bytes of constant rows, counted where they first move."""
    rows_in: int = 0
    """Bytes of the other rows a tensor task read."""
    rows_out: int = 0
    weights: int = 0
    """Bytes of weights fetched for this task: 0 if its graph server had the version."""
    gradients: int = 0
    ghosts: int = 0
    """Bytes of rows sent to other graph servers."""
    generation: int = 1
    """Of the job's start: after a restart from a checkpoint the same epochs come again."""

    @property
    def payload(self) -> int:
        return self.rows_in + self.rows_out + self.weights + self.gradients + self.ghosts


class LeaseDecision(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag="lease_decision"):
    """How many leases a graph server wants from now on, and why: what was seen until then."""

    at: float
    server: int
    before: int
    target: int
    reason: str
    tasks_per_second: float = 0.0
    busy: float = 0.0
    """Share of the leases' slots that had a task."""
    waiting: float = 0.0
    """Tasks that waited for a lease, on average."""
    cores: float = 0.0
    """Graph stages under way or waiting, per core."""


class TraceFile:
    """Appends records; a record is written whole, or not at all, also if this process is killed."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._encoder = msgspec.json.Encoder()

    def write(self, record: StepRecord | LeaseDecision) -> None:
        self._file.write(self._encoder.encode(record) + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()


class _Kind(msgspec.Struct):
    record: str = ""
    """Empty: a step."""


def read(path: Path) -> list[StepRecord]:
    """Of steps alone."""
    return [msgspec.json.decode(line, type=StepRecord) for line in _lines(path, "")]


def lease_decisions(path: Path) -> list[LeaseDecision]:
    return [msgspec.json.decode(line, type=LeaseDecision) for line in _lines(path, "lease_decision")]


def _lines(path: Path, kind: str) -> Iterator[bytes]:
    return (line for line in path.read_bytes().splitlines() if msgspec.json.decode(line, type=_Kind).record == kind)

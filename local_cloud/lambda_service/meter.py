"""What AWS would bill for what ran here, and what went wrong. One record per invocation; the totals count all.

Failed invocations are billed, throttled and refused ones are not. An invocation that had to wait for a worker to start
pays for the start as well (AWS, since August 2025). Rules of rounding: common/pricing.py.
"""

from collections import deque

import msgspec

from common.pricing import LambdaUsage


class InvocationRecord(msgspec.Struct, frozen=True, kw_only=True):
    function: str
    request_id: str
    cold_start: bool
    init_ms: float
    duration_ms: float
    billed_ms: int
    memory_mb: int
    max_memory_mb: int | None
    """The largest resident set; None where the system does not tell."""
    error_type: str | None


class Totals(msgspec.Struct, kw_only=True):
    requests: int = 0
    gb_seconds: float = 0.0
    cold_starts: int = 0
    errors: int = 0
    throttles: int = 0
    """Not among the requests."""


class Bill(Totals, kw_only=True):
    """Of all functions, and of each."""

    functions: dict[str, Totals]
    records: tuple[InvocationRecord, ...]


class Meter:
    """`num_records` of the latest invocations are remembered."""

    def __init__(self, num_records: int) -> None:
        self._records: deque[InvocationRecord] = deque(maxlen=num_records)
        self._functions: dict[str, _Count] = {}

    def invocation(self, record: InvocationRecord) -> None:
        self._records.append(record)
        self._of(record.function).add(record)

    def throttle(self, function: str) -> None:
        self._of(function).throttles += 1

    def bill(self, *, with_records: bool = True) -> Bill:
        functions = {name: count.totals() for name, count in sorted(self._functions.items())}
        together = _Count()
        for count in self._functions.values():
            together.merge(count)
        total = msgspec.structs.asdict(together.totals())
        return Bill(functions=functions, records=tuple(self._records) if with_records else (), **total)

    def _of(self, function: str) -> "_Count":
        return self._functions.setdefault(function, _Count())


class _Count:
    def __init__(self) -> None:
        self.usage = LambdaUsage()
        self.cold_starts = self.errors = self.throttles = 0

    def add(self, record: InvocationRecord) -> None:
        self.usage.invocation(memory_mb=record.memory_mb, billed_ms=record.billed_ms)
        self.cold_starts += record.cold_start
        self.errors += record.error_type is not None

    def merge(self, other: "_Count") -> None:
        self.usage.merge(other.usage)
        self.cold_starts += other.cold_starts
        self.errors += other.errors
        self.throttles += other.throttles

    def totals(self) -> Totals:
        return Totals(
            requests=self.usage.requests,
            gb_seconds=self.usage.gb_seconds,
            cold_starts=self.cold_starts,
            errors=self.errors,
            throttles=self.throttles,
        )


def report_line(record: InvocationRecord) -> str:
    """The line Lambda ends an invocation's log with."""
    parts = [
        f"REPORT RequestId: {record.request_id}",
        f"Duration: {record.duration_ms:.2f} ms",
        f"Billed Duration: {record.billed_ms} ms",
        f"Memory Size: {record.memory_mb} MB",
    ]
    if record.max_memory_mb is not None:
        parts.append(f"Max Memory Used: {min(record.max_memory_mb, record.memory_mb)} MB")
    if record.cold_start:
        parts.append(f"Init Duration: {record.init_ms:.2f} ms")
    if record.error_type == "Sandbox.Timedout":
        parts.append("Status: timeout")
    elif record.error_type is not None and record.error_type.startswith("Runtime."):
        parts.append(f"Status: error\tError Type: {record.error_type}")
    return "\t".join(parts) + "\n"

"""How long may a lease be idle? As long as it would take to have its like again. Pure.

limit = max(floor, a cold start + its constants' bytes / 75 MB/s)

Until then keeping it costs no more than a new one would; after that, at most twice the best that was possible.
"""

from collections.abc import Iterable
from dataclasses import dataclass

BYTES_PER_SECOND = 75e6
"""What a function receives."""
FORGETTING = 0.05
"""A start that is faster than the slowest one counts so much: warm starts do not make cold ones short."""


@dataclass(frozen=True)
class IdleAfter:
    floor_seconds: float
    cold_start_seconds: float
    """Before any was measured, and at the least: a start in a warm container is no cold start."""


class IdleLimit:
    def __init__(self, after: IdleAfter) -> None:
        self._after, self._slowest = after, after.cold_start_seconds
        self._bytes: dict[int, int] = {}

    def started(self, seconds: float) -> None:
        """From the invocation to the hello."""
        slower = seconds > self._slowest
        self._slowest = seconds if slower else self._slowest + FORGETTING * (seconds - self._slowest)

    def needs(self, interval: int, num_bytes: int) -> None:
        """Bytes of the constants that this interval's tasks read."""
        self._bytes[interval] = num_bytes

    def seconds(self, owned: Iterable[int]) -> float:
        """For a lease that owns these intervals."""
        moving = sum(self._bytes.get(interval, 0) for interval in owned) / BYTES_PER_SECOND
        cold = max(self._slowest, self._after.cold_start_seconds)
        return max(self._after.floor_seconds, cold + moving)

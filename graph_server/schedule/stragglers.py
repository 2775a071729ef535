"""When is a tensor task late? Pure: `now` is an argument.

A task's age begins when it was sent and its lease has nothing older in hand. It is late after max(floor, ratio ·
smoothed time); before anything was measured a prior stands in, so that the very first wave is covered, too.
"""

from collections.abc import Hashable
from dataclasses import dataclass

SMOOTHING = 0.1
"""Weight of the newest time in the smoothed one."""


@dataclass(frozen=True)
class LateAfter:
    ratio: float
    floor_seconds: float
    prior_seconds: float
    """For the first wave: a cold start and the constants, at their worst."""


class TaskTimes:
    """Smoothed per step of a program: the last layer's task is not the first's, nor training's evaluation's."""

    def __init__(self, late: LateAfter) -> None:
        self._late = late
        self._smoothed: dict[Hashable, float] = {}

    def took(self, step: Hashable, seconds: float) -> None:
        before = self._smoothed.get(step, seconds)
        self._smoothed[step] = before + SMOOTHING * (seconds - before)

    def limit(self, step: Hashable) -> float:
        """Seconds after which a task of this step is late."""
        if step not in self._smoothed:
            return max(self._late.floor_seconds, self._late.prior_seconds)
        return max(self._late.floor_seconds, self._late.ratio * self._smoothed[step])

"""What one run of a contestant gave; and several of the same taken together."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

WARM_UP = 2
"""Epochs that do one-off work: kernels are compiled or loaded, caches filled, constants sent."""


@dataclass(frozen=True)
class Overhead:
    """Per epoch, in seconds: when no step was at work anywhere. `hops`: steps of an epoch, over all intervals."""

    seconds: float
    hops: int

    @property
    def per_hop(self) -> float:
        return self.seconds / self.hops


@dataclass(frozen=True)
class Outcome:
    """seconds and losses by epoch. others: the share of all cores that somebody else had. why: nothing was measured."""

    seconds: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()
    peak_bytes: int = 0
    kernels: str = ""
    others: float = 0.0
    overhead: Overhead | None = None
    why: str = ""

    @property
    def steady(self) -> float:
        """The median epoch after the warm-up, or after as much of it as there was time for."""
        return statistics.median(self.seconds[min(WARM_UP, len(self.seconds) - 1) :])


@dataclass(frozen=True)
class Rounds:
    """Of one contestant, each a process of its own."""

    outcomes: tuple[Outcome, ...]

    @property
    def done(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.seconds]

    @property
    def steady(self) -> float | None:
        return statistics.median(o.steady for o in self.done) if self.done else None

    @property
    def first(self) -> float | None:
        return statistics.median(o.seconds[0] for o in self.done) if self.done else None

    @property
    def peak_bytes(self) -> int | None:
        return max(o.peak_bytes for o in self.done) if self.done else None

    @property
    def losses(self) -> tuple[float, ...]:
        return self.done[0].losses if self.done else ()

    @property
    def why(self) -> str:
        """Why there is nothing."""
        return "" if self.done else next((o.why for o in self.outcomes if o.why), "not run")


def ratio(slow: float | None, quick: float | None) -> float | None:
    """None where one of them is not known."""
    return None if slow is None or not quick else slow / quick


def deviation(curve: Sequence[float], other: Sequence[float]) -> float | None:
    """The largest relative difference of two loss curves, over the epochs that both have; None: there are none."""
    pairs = list(zip(curve, other, strict=False))
    return max(abs(a - b) / max(abs(a), abs(b), 1e-12) for a, b in pairs) if pairs else None

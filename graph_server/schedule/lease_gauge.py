"""What a lease tuner needs to know, out of what is seen in passing. Pure: `now` is an argument.

A window begins and ends with a round: the first task of a newer `train e`. So windows are alike, however the stages of
a round differ. One in which leases were on their way, because their number has changed, is not counted.
"""

from dataclasses import dataclass

from common.passes import Pass, PassKind
from graph_server.schedule.lease_events import LeaseLoad
from graph_server.schedule.lease_tuner import Window

WINDOW_SECONDS = 1.0
"""At the least: shorter ones say little, and no job is worth tuning that has not many of them."""


@dataclass(frozen=True)
class Totals:
    """Counted since the job began."""

    tasks: int
    throttled: int
    core_seconds: float
    """Of graph stages under way or waiting, per core."""


@dataclass
class _Sums:
    """Since the window began."""

    since: float
    before: Totals
    samples: int = 0
    waiting: int = 0
    in_hand: int = 0
    slots: int = 0
    leases: int = 0


class LeaseGauge:
    def __init__(self) -> None:
        self._epoch = 0
        self._sums: _Sums | None = None
        self._is_settled = False

    def changed(self) -> None:
        """Another number of leases is wanted."""
        self._sums, self._is_settled = None, False

    def sample(self, load: LeaseLoad) -> None:
        self._is_settled = self._is_settled or (load.opening == 0 and load.live > 0)
        sums = self._sums
        if sums is None:
            return
        sums.samples += 1
        sums.waiting += load.waiting
        sums.in_hand += load.in_hand
        sums.slots += load.slots
        sums.leases = max(sums.leases, load.live)

    def is_round(self, pass_: Pass) -> bool:
        """Whether this task is the first of a round."""
        begins = pass_.kind is PassKind.TRAIN and pass_.epoch > self._epoch
        self._epoch = pass_.epoch if begins else self._epoch
        return begins

    def round_began(self, totals: Totals, now: float) -> Window | None:
        """The window that ends here, if it is long enough."""
        sums = self._sums
        if sums is not None and now - sums.since < WINDOW_SECONDS:
            return None
        self._sums = _Sums(now, totals) if self._is_settled else None
        return None if sums is None or not sums.leases else _window(sums, totals, now)


def _window(sums: _Sums, totals: Totals, now: float) -> Window:
    seconds = now - sums.since
    return Window(
        seconds=seconds,
        tasks=totals.tasks - sums.before.tasks,
        leases=sums.leases,
        busy=sums.in_hand / max(1, sums.slots),
        waiting=sums.waiting / sums.samples,
        cores=(totals.core_seconds - sums.before.core_seconds) / seconds,
        throttled=totals.throttled - sums.before.throttled,
    )

"""Keeps the number of leases where the tuner wants it: watches a lease book, retargets it, writes down why.

The tuner decides; this hands it windows. `now` is an argument here, too.
"""

from collections.abc import Callable
from dataclasses import dataclass

from common.passes import Pass
from common.trace import LeaseDecision
from graph_server.cores import Cores
from graph_server.schedule.lease_book import LeaseBook
from graph_server.schedule.lease_events import LeaseCommand, LeaseSettings
from graph_server.schedule.lease_gauge import LeaseGauge, Totals
from graph_server.schedule.lease_tuner import Decision, LeaseTuner, Measured

NOTHING = Measured(leases=0, rate=0.0, busy=0.0, waiting=0.0, cores=0.0)


@dataclass(frozen=True)
class Written:
    """Where decisions go: `at` counts from `began`."""

    write: Callable[[LeaseDecision], None]
    server: int
    began: float


class LeaseTuning:
    def __init__(self, book: LeaseBook, settings: LeaseSettings, cores: Cores, written: Written) -> None:
        self._book, self._cores, self._written = book, cores, written
        self._gauge = LeaseGauge()
        self._tuner = LeaseTuner(
            least=settings.least, most=max(settings.least, settings.most), start=max(1, settings.target)
        )
        self.tasks_elsewhere = 0
        why = f"start: {settings.num_intervals} intervals, {settings.least} to {settings.most} leases"
        self._write(0, Decision(self._tuner.target, why, NOTHING), written.began)

    def tick(self) -> None:
        self._gauge.sample(self._book.load())

    def saw(self, pass_: Pass, now: float) -> list[LeaseCommand]:
        """A task of this pass begins, on a lease or elsewhere."""
        if not self._gauge.is_round(pass_):
            return []
        window = self._gauge.round_began(self._totals(), now)
        decision = None if window is None else self._tuner.decide(window, now)
        if decision is None:
            return []
        before = self._book.target
        self._write(before, decision, now)
        if decision.target == before:
            return []
        self._gauge.changed()
        return self._book.retarget(decision.target, now)

    def _totals(self) -> Totals:
        counts = self._book.counts
        return Totals(counts.tasks + self.tasks_elsewhere, counts.throttled, self._cores.seconds())

    def _write(self, before: int, decision: Decision, now: float) -> None:
        seen = decision.seen
        self._written.write(
            LeaseDecision(
                at=now - self._written.began,
                server=self._written.server,
                before=before,
                target=decision.target,
                reason=decision.reason,
                tasks_per_second=seen.rate,
                busy=seen.busy,
                waiting=seen.waiting,
                cores=seen.cores,
            )
        )

"""Between the ends of two epochs: wall time, processor time of all roles, and where the intervals' time went."""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import psutil

from common.epoch_metrics import EpochMetrics
from common.trace import StepRecord


@dataclass(frozen=True)
class Window:
    """Epochs. The first ones let a run get into its stride. The last ones are not measured either: in async an epoch
    ends while later ones are under way, and so there is as much of that at both ends."""

    before: int
    measured: int
    after: int

    @property
    def last(self) -> int:
        return self.before + self.measured

    @property
    def num_epochs(self) -> int:
        return self.last + self.after


@dataclass(frozen=True)
class Measured:
    """Per epoch, in seconds."""

    epoch: float
    processor: float
    """Of all processes of the job but the launcher, on all cores together."""
    others: float
    """Of everybody else on this machine: with much of it, the figures say little."""
    task: float
    """Arithmetic of one tensor task, the mean over the program's; of each what nine of ten took longer than, for the
    others shared a core."""
    away: float
    """A mean interval's time in tensor tasks, from the decision to the result ..."""
    graph: float
    """... in graph steps ..."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Of the whole run, as its roles told them: relaunches, reads by age, milliseconds at gates."""

    @property
    def waiting(self) -> float:
        """... and at gates and in queues, which is the rest."""
        return self.epoch - self.away - self.graph


@dataclass
class Stopwatch:
    """`epoch_ended` and `record` are what a Watch wants."""

    window: Window
    _at: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    _records: list[StepRecord] = field(default_factory=list)

    def epoch_ended(self, ended: EpochMetrics) -> None:
        if ended.epoch in (self.window.before, self.window.last):
            self._at[ended.epoch] = (time.monotonic(), processor_seconds(), machine_seconds())

    def record(self, record: StepRecord) -> None:
        kind, epoch = record.pass_.split()
        if kind == "train" and self.window.before < int(epoch) <= self.window.last:
            self._records.append(record)

    def read(self, num_intervals: int, counts: Mapping[str, int]) -> Measured:
        before, last = self._at[self.window.before], self._at[self.window.last]
        epoch, processor, machine = ((b - a) / self.window.measured for a, b in zip(before, last, strict=True))
        tasks = [r for r in self._records if r.backend]
        rest = [r for r in self._records if not r.backend]
        of_one = 1 / self.window.measured / num_intervals
        return Measured(
            epoch=epoch,
            processor=processor,
            others=max(0.0, machine - processor),
            task=_undisturbed(tasks),
            away=sum(r.received - r.created for r in tasks) * of_one,
            graph=sum(r.received - r.created for r in rest) * of_one,
            counts=counts,
        )


def _undisturbed(tasks: Sequence[StepRecord]) -> float:
    each: dict[int, list[float]] = {}
    for task in tasks:
        each.setdefault(task.position, []).append(task.ended - task.started)
    return statistics.fmean(statistics.quantiles(seconds, n=10, method="inclusive")[0] for seconds in each.values())


def processor_seconds() -> float:
    """Of the processes that this one started, of theirs, and of those that have ended."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + getattr(times, "children_user", 0) + getattr(times, "children_system", 0)
    return total


def machine_seconds() -> float:
    """Of all processes there are, on all cores together."""
    times = psutil.cpu_times()
    return float(times.user + times.system + getattr(times, "nice", 0))

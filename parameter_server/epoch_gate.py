"""Which interval may begin which epoch, from one pause to the next. Pure.

An interval may begin epoch e once every interval everywhere has finished epoch e - 1 - staleness; nobody begins an
epoch after `last`, so when all have finished it nothing is in flight. Source: Dorylus (OSDI'21), section 5.2.
"""

from collections.abc import Collection, Iterable, Mapping

Sums = Mapping[str, float]


class EpochGate:
    """Epochs `first`..`last`, both included."""

    def __init__(self, num_intervals: int, *, staleness: int, first: int, last: int) -> None:
        self._num_intervals, self._staleness = num_intervals, staleness
        self.first, self.last = first, last
        self._begun = [first - 1] * num_intervals
        self._reports: dict[int, dict[int, Sums]] = {}
        self._ended = first - 1
        """The newest epoch that all have finished."""

    @property
    def is_drained(self) -> bool:
        return self._ended == self.last

    @property
    def newest_begun(self) -> int:
        return max(self._begun)

    def has_begun(self, interval: int, epoch: int) -> bool:
        return self.first <= epoch <= self._begun[interval]

    @property
    def reported(self) -> Collection[int]:
        """Who has finished the oldest epoch that not all have."""
        return self._reports.get(self._ended + 1, {}).keys()

    def finished(self, interval: int, epoch: int, sums: Sums) -> list[tuple[int, list[Sums]]]:
        """The epochs that thereby end, each with the sums of all intervals. A repeat changes nothing."""
        if epoch > self._ended:
            self._reports.setdefault(epoch, {}).setdefault(interval, dict(sums))
        ended = []
        while len(reports := self._reports.get(self._ended + 1, {})) == self._num_intervals:
            self._ended += 1
            ended.append((self._ended, [reports[i] for i in range(self._num_intervals)]))
            del self._reports[self._ended]
        return ended

    def begin(self, candidates: Iterable[int]) -> list[tuple[int, int]]:
        """(interval, epoch) of those that may begin now, and thereby have. When an epoch has ended, all may."""
        newest, granted = min(self.last, self._ended + 1 + self._staleness), []
        for interval in candidates:
            epoch = self._begun[interval]
            if epoch < newest and self._has_finished(interval, epoch):
                self._begun[interval] += 1
                granted.append((interval, epoch + 1))
        return granted

    def close(self) -> None:
        """A pause is wanted as soon as may be: at the newest epoch that anybody has begun."""
        self.last = min(self.last, max(self.newest_begun, self.first))

    def _has_finished(self, interval: int, epoch: int) -> bool:
        return epoch <= self._ended or interval in self._reports.get(epoch, {})

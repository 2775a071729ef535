"""Which rows a Gather still waits for: one counter per (epoch, table, own interval), no barrier.

A graph server may hear of a pass from a peer's ghosts before it hears of it from the training clock, so arrivals are
kept by pass; those of passes that are over are forgotten. In async, rows of a later epoch count for earlier ones, too:
an interval's block in a table is overwritten as it goes on.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from common.passes import Pass, PassKind

Moment = tuple[PassKind, int]
"""A pass without its weights version, which may differ from interval to interval."""


class Arrivals:
    """feeds: per own interval the intervals whose rows its Gather reads, for one direction of the edges.
    staleness: in epochs, how far back a train pass's Gather may look; None: rows count for their own pass only."""

    def __init__(
        self,
        own: Sequence[int],
        feeds: Mapping[int, Sequence[int]],
        num_intervals: int,
        *,
        staleness: int | None = None,
    ) -> None:
        self._own = tuple(own)
        self._place = {interval: place for place, interval in enumerate(own)}
        self._num_feeds = np.array([len(feeds[interval]) for interval in own], np.int64)
        self._readers = _readers(own, feeds, num_intervals)
        self._num_intervals = num_intervals
        self._reach = 0 if staleness is None else 2 * (staleness + 1)
        """Epochs by which rows that arrive may be ahead of the oldest that anybody here still waits for."""
        self._missing: dict[tuple[Moment, str], npt.NDArray[np.int64]] = {}
        self._newest: dict[tuple[PassKind, str], npt.NDArray[np.int64]] = {}
        self._first = 1

    def add(self, pass_: Pass, table: str, interval: int) -> list[int]:
        """The own intervals that thereby have all they read of some pass; none if these rows had arrived before."""
        newest = self._newest_of(pass_.kind, table)
        before = int(newest[interval])
        if before >= pass_.epoch:
            return []
        newest[interval] = pass_.epoch
        readers, completed = self._readers[interval], np.zeros(len(self._own), np.bool_)
        for epoch in self._counting(pass_, before):
            missing = self._missing.setdefault(((pass_.kind, epoch), table), self._num_feeds.copy())
            missing[readers] -= 1
            completed[readers[missing[readers] == 0]] = True
        return [self._own[place] for place in np.flatnonzero(completed)]

    def complete(self, pass_: Pass, table: str, interval: int) -> bool:
        """All rows that this own interval reads bear this pass (async: or a later one)."""
        place = self._place[interval]
        missing = self._missing.get(((pass_.kind, pass_.epoch), table), self._num_feeds)
        return bool(missing[place] == 0)

    def all_arrived(self, pass_: Pass, table: str) -> bool:
        """Every interval of the whole graph has been scattered."""
        return bool((self._newest_of(pass_.kind, table) >= pass_.epoch).all())

    def forget_before(self, epoch: int) -> None:
        """Nobody here waits for an earlier epoch any more."""
        self._first = max(self._first, epoch)
        for key in [key for key in self._missing if key[0][1] < epoch]:
            del self._missing[key]

    def _counting(self, pass_: Pass, before: int) -> Iterable[int]:
        """Epochs for which these rows are the first from their interval."""
        if pass_.kind is not PassKind.TRAIN:
            return (pass_.epoch,)
        return range(max(before + 1, self._first, pass_.epoch - self._reach), pass_.epoch + 1)

    def _newest_of(self, kind: PassKind, table: str) -> npt.NDArray[np.int64]:
        if (kind, table) not in self._newest:
            self._newest[kind, table] = np.zeros(self._num_intervals, np.int64)
        return self._newest[kind, table]


def _readers(own: Sequence[int], feeds: Mapping[int, Sequence[int]], num_intervals: int) -> list[npt.NDArray[np.int64]]:
    readers: list[list[int]] = [[] for _ in range(num_intervals)]
    for place, interval in enumerate(own):
        for feeding in feeds[interval]:
            readers[feeding].append(place)
    return [np.array(places, np.int64) for places in readers]

"""Which rows a Gather still waits for: one counter per (pass, table, own interval), no barrier.

A graph server may hear of a pass from a peer's ghosts before it hears of it from the training clock, so arrivals are
kept by pass; those of passes that are over are forgotten.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from common.passes import Pass


class Arrivals:
    """feeds: per own interval the intervals whose rows its Gather reads, for one direction of the edges."""

    def __init__(self, own: Sequence[int], feeds: Mapping[int, Sequence[int]], num_intervals: int) -> None:
        self._own = tuple(own)
        self._place = {interval: place for place, interval in enumerate(own)}
        self._num_feeds = np.array([len(feeds[interval]) for interval in own], np.int64)
        self._readers = _readers(own, feeds, num_intervals)
        self._num_intervals = num_intervals
        self._missing: dict[tuple[Pass, str], npt.NDArray[np.int64]] = {}
        self._arrived: dict[tuple[Pass, str], npt.NDArray[np.bool_]] = {}

    def add(self, pass_: Pass, table: str, interval: int) -> list[int]:
        """The own intervals that thereby have all they read; none if these rows had arrived before."""
        key = (pass_, table)
        if key not in self._missing:
            self._missing[key] = self._num_feeds.copy()
            self._arrived[key] = np.zeros(self._num_intervals, np.bool_)
        if self._arrived[key][interval]:
            return []
        self._arrived[key][interval] = True
        readers, missing = self._readers[interval], self._missing[key]
        missing[readers] -= 1
        return [self._own[place] for place in readers[missing[readers] == 0]]

    def complete(self, pass_: Pass, table: str, interval: int) -> bool:
        """All rows that this own interval reads bear this pass."""
        place = self._place[interval]
        missing = self._missing.get((pass_, table), self._num_feeds)
        return bool(missing[place] == 0)

    def all_arrived(self, pass_: Pass, table: str) -> bool:
        """Every interval of the whole graph has been scattered."""
        arrived = self._arrived.get((pass_, table))
        return arrived is not None and bool(arrived.all())

    def forget_before(self, pass_: Pass) -> None:
        for kept in (self._missing, self._arrived):
            for key in [key for key in kept if key[0] < pass_]:
                del kept[key]


def _readers(own: Sequence[int], feeds: Mapping[int, Sequence[int]], num_intervals: int) -> list[npt.NDArray[np.int64]]:
    readers: list[list[int]] = [[] for _ in range(num_intervals)]
    for place, interval in enumerate(own):
        for feeding in feeds[interval]:
            readers[feeding].append(place)
    return [np.array(places, np.int64) for places in readers]

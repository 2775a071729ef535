"""Whose turn is it to end an epoch? Pure.

Gradients that come out of interval order are held back until those before them have come. Where intervals are many and
weights are large, that would fill a parameter server.

Intervals have places in line, epoch after epoch: place = (epoch - 1) · intervals + interval. An interval may begin the
last backward task of an epoch if fewer than `window` places lie between its own and the first one that has not ended:

    ended ended ended  -  ended  -  ended  -  ...          held back: at most `window` of the gradients
                       ^first unfinished    ^first + window: not yet

That is the sum of an epoch's fixed tree (tree_sum.py), whose merged part takes log2(intervals) arrays. Nobody waits for
what waits for him: other intervals need nothing of a last backward task before the next epoch.
"""

BOUND_BYTES = 1_000_000_000
"""Of one parameter server, for gradients that are held back."""


def window_of(num_intervals: int, gradient_bytes: int, bound: int = BOUND_BYTES) -> int | None:
    """gradient_bytes: one interval's, of all parameters, on one parameter server. None: all of an epoch fit."""
    merged = 2 * (num_intervals.bit_length() + 1)
    window = bound // max(1, gradient_bytes) - merged
    return None if window >= num_intervals else max(1, window)


class GradientGate:
    """From the epoch after `epoch` on. window: None holds nobody back."""

    def __init__(self, num_intervals: int, window: int | None, *, epoch: int = 0) -> None:
        self._num_intervals, self._window = num_intervals, window
        self._first = epoch * num_intervals
        self._ended: set[int] = set()
        """Places beyond the first unfinished one."""

    @property
    def ends_below(self) -> int | None:
        """Places that may begin their last backward task lie below this; it never falls."""
        return None if self._window is None else self._first + self._window

    def finished(self, interval: int, epoch: int) -> bool:
        """Whether more may end now. A repeat changes nothing."""
        place, before = (epoch - 1) * self._num_intervals + interval, self._first
        if self._window is None or place < before:
            return False
        self._ended.add(place)
        while self._first in self._ended:
            self._ended.remove(self._first)
            self._first += 1
        return self._first > before

"""Sums over intervals whose bits do not depend on the order of arrival.

Floating-point addition is not associative, and results arrive in any order. So the grouping is fixed: a binary tree
over the leaf numbers 0 .. n-1, in which (0, 1), (2, 3), ... are added, then pairs of those, and so on; a node whose
sibling lies beyond the end is handed up as it is. Sums are float64. Two halves are merged as soon as both are there,
so leaves that come nearly in order keep only about log2(n) arrays alive.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from common.errors import ScheduleError

Array = npt.NDArray[Any]


class TreeSum:
    """The float64 sum of `num_leaves` arrays of one shape, or of as many numbers."""

    def __init__(self, num_leaves: int) -> None:
        if num_leaves < 1:
            raise ScheduleError(what=f"a sum over {num_leaves} leaves", why="there is at least one interval")
        self._widths = _level_widths(num_leaves)
        self._seen: set[int] = set()
        self._held: dict[tuple[int, int], Array] = {}
        self.held_bytes = 0
        self._shape: tuple[int, ...] | None = None

    def add(self, leaf: int, value: Array | float) -> bool:
        """Add one leaf, in any order. False if that leaf was there already: then nothing changes.

        value  float32 or float64, every leaf of one shape; copied, so the caller may use its buffer again

        Raises ScheduleError for a leaf number that is not there, another type or another shape.
        """
        if not 0 <= leaf < self._widths[0]:
            raise ScheduleError(what=f"leaf {leaf} of a sum over {self._widths[0]} leaves", why="there is no such leaf")
        if leaf in self._seen:
            return False
        array = self._own(leaf, value)
        self._shape = array.shape
        self._seen.add(leaf)
        self._climb(leaf, array)
        return True

    def __contains__(self, leaf: int) -> bool:
        return leaf in self._seen

    @property
    def num_added(self) -> int:
        return len(self._seen)

    @property
    def complete(self) -> bool:
        return len(self._seen) == self._widths[0]

    def total(self) -> Array:
        """The sum, float64, a new array (of shape () for numbers). Raises ScheduleError while a leaf is missing."""
        if not self.complete:
            what = f"the sum was asked for with {self.num_added} of {self._widths[0]} leaves"
            raise ScheduleError(what=what, why="a sum without all its leaves is not the gradient of any loss")
        return self._held[len(self._widths) - 1, 0].astype(np.float64)

    def _own(self, leaf: int, value: Array | float) -> Array:
        array = np.array(value, dtype=np.float64) if isinstance(value, float | int) else np.array(value)
        if array.dtype not in (np.float32, np.float64):
            raise ScheduleError(what=f"leaf {leaf} is {array.dtype}", why="sums are over float32 or float64")
        if self._shape not in (None, array.shape):
            raise ScheduleError(
                what=f"leaf {leaf} has shape {array.shape}, the leaves before it {self._shape}",
                why="leaves of different shapes would be broadcast into a wrong sum",
            )
        return array

    def _climb(self, index: int, value: Array) -> None:
        for level, width in enumerate(self._widths):
            sibling = index ^ 1
            if sibling < width:
                other = self._held.pop((level, sibling), None)
                if other is None:
                    self._hold((level, index), value)
                    return
                self.held_bytes -= other.nbytes
                value = _merge(other, value) if index % 2 else _merge(value, other)
            elif width == 1:
                self._hold((level, 0), value)
            index //= 2

    def _hold(self, place: tuple[int, int], value: Array) -> None:
        self._held[place] = value
        self.held_bytes += value.nbytes


def sum_by_name(leaves: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """For every name the sum over the leaves along the same tree, names sorted; a leaf without a name adds 0."""
    names = sorted({name for leaf in leaves for name in leaf})
    return {name: _sum([float(leaf.get(name, 0.0)) for leaf in leaves]) for name in names}


def _sum(values: list[float]) -> float:
    while len(values) > 1:
        odd_one = values[len(values) & ~1 :]
        values = [left + right for left, right in zip(values[::2], values[1::2], strict=False)] + odd_one
    return values[0]


def _level_widths(num_leaves: int) -> list[int]:
    widths = [num_leaves]
    while widths[-1] > 1:
        widths.append((widths[-1] + 1) // 2)
    return widths


def _merge(left: Array, right: Array) -> Array:
    """left + right in float64, into one of the two if it is wide enough: both belong to the tree alone."""
    out = next((array for array in (left, right) if array.dtype == np.float64), None)
    # What is not finite is for the owner of the sum to judge, not a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.add(left, right, out=out, dtype=np.float64))

"""The runs of an external sort: files of keys, row << 32 | column, one for the in-edges of a run of vertices and one
for its out-edges.

With weights a key and its weight stand side by side. Equal keys keep the order in which they came, so the first of
them, and the k-th, are those of the list.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graph_server.graph.csr import Ints, Weights, offsets
from graph_server.large.pair_file import EdgeBatch

Array = np.ndarray[Any, Any]
Batches = Callable[[], Iterator[EdgeBatch]]
"""The same edges whenever it is called."""
_WEIGHTED = np.dtype([("key", np.int64), ("weight", np.float32)])


class Side(NamedTuple):
    """The edges of a run in one direction.

    keys     distinct, ascending; counts: how often each is there
    weights  of all of them, in the order of keys; repeats in the order of the list
    of_another_weight  repeats whose weight is not that of the first
    """

    keys: Ints
    counts: Ints
    weights: Weights | None
    of_another_weight: int


class Rows(NamedTuple):
    """The distinct keys of a run, and how often each is there in and out, with the weights of either side."""

    keys: Ints
    num_in: Ints
    num_out: Ints
    in_weights: Weights | None
    out_weights: Weights | None
    of_another_weight: int


class Runs:
    """bounds: the first vertex of each run, and the end."""

    def __init__(self, bounds: Ints, folder: Path, *, weighted: bool) -> None:
        self.bounds, self.weighted, self._folder = bounds, weighted, folder

    def fill(self, batches: Batches) -> None:
        with ExitStack() as stack:
            files = {
                name: [stack.enter_context(path.open("wb")) for path in self._paths(name)] for name in ("in", "out")
            }
            for sources, targets, weights in batches():
                self._scatter(files["in"], targets, sources, weights)
                self._scatter(files["out"], sources, targets, weights)

    def sort(self) -> None:
        for path in (*self._paths("in"), *self._paths("out")):
            found = self._load(path)
            if self.weighted:
                found = found[np.argsort(found["key"], kind="stable")]
            else:
                found.sort()
            found.tofile(path)

    def read(self, *, dedup: bool) -> Iterator[tuple[Rows, int]]:
        """With the number of rows of the run."""
        for ins, outs, first, last in zip(
            self._paths("in"), self._paths("out"), self.bounds[:-1], self.bounds[1:], strict=True
        ):
            yield _joined(self._side(ins, dedup=dedup), self._side(outs, dedup=dedup)), int(last - first)

    def _load(self, path: Path) -> Array:
        found: Array = np.fromfile(path, _WEIGHTED if self.weighted else np.int64)
        return found

    def _paths(self, name: str) -> list[Path]:
        return [self._folder / f"run-{number:04d}-{name}" for number in range(len(self.bounds) - 1)]

    def _scatter(self, files: list[Any], rows: Ints, columns: Ints, weights: Weights | None) -> None:
        place = np.searchsorted(self.bounds, rows, side="right") - 1
        entries: Array = (rows - self.bounds[place]) << 32 | columns
        if weights is not None:
            keys, entries = entries, np.empty(len(rows), _WEIGHTED)
            entries["key"], entries["weight"] = keys, weights
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(len(files) + 1))
        entries = entries[order]
        for number, file in enumerate(files):
            entries[ends[number] : ends[number + 1]].tofile(file)

    def _side(self, path: Path, *, dedup: bool) -> Side:
        entries, weights = self._load(path), None
        keys = entries["key"].copy() if self.weighted else entries
        starts = starts_of(keys)
        counts, others = np.diff(starts, append=len(keys)), 0
        if self.weighted:
            weights = entries["weight"].copy()
            others = int((weights != np.repeat(weights[starts], counts)).sum())
        if dedup:
            counts, weights = np.ones_like(counts), None if weights is None else weights[starts]
        return Side(keys[starts], counts, weights, others)


def starts_of(keys: Ints) -> Ints:
    """Where another key begins."""
    return np.flatnonzero(np.diff(keys, prepend=-1))


def _joined(ins: Side, outs: Side) -> Rows:
    keys = np.concatenate([ins.keys, outs.keys])
    keys.sort(kind="stable")  # two sorted halves: a merge
    keys = keys[starts_of(keys)]
    both = np.zeros((2, len(keys)), np.int64)
    for counts, side in zip(both, (ins, outs), strict=True):
        counts[np.searchsorted(keys, side.keys)] = side.counts
    return Rows(keys, both[0], both[1], ins.weights, outs.weights, ins.of_another_weight)


def answered(own: tuple[Ints, Weights], other: tuple[Ints, Weights]) -> Weights:
    """The weights of one side when it has got what the other side has more of: the k-th of either answer each other.

    own, other   how often each key is there, and the weights
    """
    wanted = np.maximum(own[0], other[0])
    key = np.repeat(np.arange(len(wanted)), wanted)
    rank = np.arange(len(key)) - offsets(wanted)[key]
    is_own = rank < own[0][key]
    weights = np.empty(len(key), np.float32)
    for (counts, values), chosen in ((own, is_own), (other, ~is_own)):
        weights[chosen] = values[(offsets(counts)[key] + rank)[chosen]]
    return weights

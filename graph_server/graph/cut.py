"""The cut: vertices are relabelled and intervals made once for the whole graph, whatever the machine.

One cluster becomes one interval, a run of relabelled ids; within it the vertices keep their original order. What a
task computes depends on `order` and `bounds` alone, so `sha256` covers these and nothing else: two methods that give
the same intervals give the same weights.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from common.errors import SpecError
from graph_server.graph.csr import Bools, Csr, EdgeList, Ints, build, offsets, symmetrised

METHODS = ("stream", "balanced", "fennel", "metis", "range", "hash")
TASK_INPUT_BYTES = 8_000_000
"""An interval's widest task input: large enough to hide a call's latency, small enough for a function's memory."""
WORTH_SHARING_BYTES = 2_000_000
"""Of all intervals' widest task input. From here on two cores save more by sharing the arithmetic than a second
interval's steps cost."""
SMALL_GRAPH_EDGES = 50_000
"""Below this there is nothing for more than two intervals to hide."""
FEW_INTERVALS = 16
"""Fewer are made even: of five, two cores would do three and two, and one would wait."""
MAX_INTERVALS = 4096


@dataclass(frozen=True, eq=False)
class Cut:
    """order   [V] int64: relabelled id -> row in the dataset, a permutation
    bounds  [num_intervals + 1] int64: interval i is bounds[i] : bounds[i + 1]; empty ones are legal
    """

    method: str
    seed: int
    order: Ints
    bounds: Ints

    @property
    def num_intervals(self) -> int:
        return len(self.bounds) - 1

    @cached_property
    def rank(self) -> Ints:
        """[V] int64: row in the dataset -> relabelled id."""
        rank = np.empty_like(self.order)
        rank[self.order] = np.arange(len(self.order))
        return rank

    @cached_property
    def sha256(self) -> str:
        digest = hashlib.sha256(f"dorylus cut 1: {self.num_intervals} {len(self.order)}\n".encode())
        digest.update(np.ascontiguousarray(self.bounds, "<i8").tobytes())
        digest.update(np.ascontiguousarray(self.order, "<i8").tobytes())
        return digest.hexdigest()


def num_intervals_auto(num_nodes: int, num_edges_without_self_loops: int, widest_task_input_floats: int) -> int:
    """How many intervals give a widest task input of at most 8 MB: 2 if it has 2 MB in all, at most 4096.

    widest_task_input_floats  float32 columns per vertex of the widest tensor task's input
    """
    num_bytes = num_nodes * widest_task_input_floats * 4
    least = 2 if num_bytes >= WORTH_SHARING_BYTES else 1
    needed = max(-(-num_bytes // TASK_INPUT_BYTES), least)
    if num_edges_without_self_loops < SMALL_GRAPH_EDGES:
        needed = least
    elif 1 < needed < FEW_INTERVALS:
        needed += needed % 2
    return min(needed, MAX_INTERVALS)


def make_cut(
    edges: EdgeList,
    num_intervals: int,
    *,
    method: str = "stream",
    seed: int = 0,
    max_rows_per_interval: int | None = None,
    train: Bools | None = None,
) -> Cut:
    """Cut a graph into intervals.

    edges                  as the model will see them: after `directed` and `dedup`
    max_rows_per_interval  refuse a larger interval, with the number of intervals it would take
    train                  [V] the vertices that `balanced` spreads; no other method looks at them

    Raises SpecError for an unknown method, fewer than one interval, or intervals that stay too large; DatasetError if
    METIS is asked for and cannot run.
    """
    _check(num_intervals, method)
    max_rows = edges.num_nodes if max_rows_per_interval is None else max_rows_per_interval
    if edges.num_nodes > max_rows * num_intervals:
        raise _too_large(-(-edges.num_nodes // num_intervals), max_rows, -(-edges.num_nodes // max_rows))
    clusters = _clusters(edges, num_intervals, method, seed, max_rows=max_rows, train=train)
    cut = cut_of_clusters(clusters, num_intervals, method=method, seed=seed)
    largest = int(np.diff(cut.bounds).max())
    if largest > max_rows:
        raise _too_large(largest, max_rows, -(-num_intervals * largest // max_rows))
    return cut


def cut_of_clusters(clusters: Ints, num_intervals: int, *, method: str, seed: int) -> Cut:
    """Cluster c becomes interval c; its vertices keep their order."""
    order = np.argsort(clusters, kind="stable").astype(np.int64, copy=False)
    return Cut(method, seed, order, offsets(np.bincount(clusters, minlength=num_intervals)))


def range_clusters(in_degree: Ints, out_degree: Ints, num_clusters: int) -> Ints:
    """Runs of original ids, balanced in edges: a vertex weighs its in-edges, its out-edges and one."""
    before = offsets(in_degree + out_degree + 1)
    return before[:-1] * num_clusters // max(int(before[-1]), 1)


def hash_clusters(num_nodes: int, num_clusters: int, seed: int) -> Ints:
    """splitmix64(seed, row) mod num_clusters: no locality at all, the floor that other cuts are measured against."""
    start = splitmix64(np.array([seed % 2**64], np.uint64))
    hashed = splitmix64(start ^ np.arange(num_nodes, dtype=np.uint64))
    return (hashed % np.uint64(num_clusters)).astype(np.int64)


def splitmix64(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """One step of splitmix64 from each value as state, mod 2^64. Source: Steele, Lea and Flood, OOPSLA 2014."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def streamed_clusters(
    structure: Csr,
    num_clusters: int,
    method: str,
    *,
    seed: int,
    max_rows: int | None = None,
    train: Bools | None = None,
) -> Ints:
    """method: stream, balanced or fennel; the first two are LDG."""
    # Here, not above: a tiny graph has one interval and does not wait for numba.
    from graph_server.graph.stream_cut import stream_clusters

    return stream_clusters(
        structure,
        num_clusters,
        seed=seed,
        max_rows=max_rows,
        objective="fennel" if method == "fennel" else "ldg",
        train=train if method == "balanced" else None,
    )


def _clusters(
    edges: EdgeList, num_clusters: int, method: str, seed: int, *, max_rows: int, train: Bools | None
) -> Ints:
    if num_clusters == 1:
        return np.zeros(edges.num_nodes, np.int64)
    match method:
        case "range":
            in_degree, out_degree = (
                np.bincount(ends, minlength=edges.num_nodes) for ends in (edges.targets, edges.sources)
            )
            return range_clusters(in_degree, out_degree, num_clusters)
        case "hash":
            return hash_clusters(edges.num_nodes, num_clusters, seed)
        case "metis":
            from graph_server.graph.metis_cut import metis_clusters

            return metis_clusters(symmetrised(build(edges)), num_clusters, seed=seed)
        case _:
            structure = symmetrised(build(edges))
            return streamed_clusters(structure, num_clusters, method, seed=seed, max_rows=max_rows, train=train)


def _check(num_intervals: int, method: str) -> None:
    if method not in METHODS:
        raise SpecError(
            what=f"cut.method = {method!r}", why="there is no such method", fix=f"choose one of {', '.join(METHODS)}"
        )
    if num_intervals < 1:
        raise SpecError(
            what=f"cut.num_intervals = {num_intervals}",
            why="every vertex lies in an interval, so there is at least one",
            fix="set cut.num_intervals to 1 or more, or to auto",
        )


def _too_large(rows: int, max_rows: int, needed: int) -> SpecError:
    return SpecError(
        what=f"an interval of {rows} vertices, where {max_rows} are the most that fit",
        why="one tensor task works on a whole interval, and its rows would not fit in the memory of a task",
        fix=f"set cut.num_intervals to at least {needed}",
    )

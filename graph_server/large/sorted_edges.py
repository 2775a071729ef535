"""In-edges of every vertex out of an unsorted list, in bounded memory: an external sort into compressed rows.

    degrees -> runs of vertices with edges for one sort -> every edge to the runs of both its ends -> sort run by run

Both directions of an edge meet in the run of a row, so repeats and missing reverse edges are found there, with the same
result as `apply_edge_policies`. What is held is one run, and a few numbers for each vertex.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from common.errors import DatasetError
from graph_server.graph.csr import Csr, Ints, offsets

Batches = Callable[[], Iterator[tuple[Ints, Ints]]]
"""(sources, targets) in rows, the same whenever it is called."""
ENTRY_BYTES = 300
"""Of one in-edge of a run while it is sorted; its out-edges are counted in."""
BESIDE_BYTES = 300_000_000
"""The program itself, and a batch."""
VERTEX_BYTES = 48
MOST_RUNS = 400
"""Files that are open at once, of each direction."""


@dataclass(frozen=True, eq=False)
class SortedEdges:
    """in_edges   sources ascend in a row, repeats kept; the array of sources is a mapped file
    structure  of both directions, for a cut; in_edges itself where the graph is symmetric
    out_degree [V] int64
    counts     as of `apply_edge_policies`, where they are known
    """

    in_edges: Csr
    structure: Csr
    out_degree: Ints
    directed: bool
    symmetric: bool
    counts: dict[str, int | float]


class _Rows(NamedTuple):
    """The distinct keys (row << 32 | column) of a run, and how often each is there in and out."""

    keys: Ints
    num_in: Ints
    num_out: Ints


def sort_edges(
    batches: Batches,
    num_nodes: int,
    *,
    decide: Callable[[float], bool],
    dedup: bool,
    folder: Path,
    memory_bytes: int,
) -> SortedEdges:
    """decide: of the share of edges that have their reverse, whether edges go one way only; files grow in `folder`.

    Raises DatasetError if the memory is too little, and what `decide` raises.
    """
    runs = _make_runs(batches, num_nodes, folder, memory_bytes)
    counts: Counter[str] = Counter()
    for number, (rows, _) in enumerate(runs.read(dedup=False)):
        _count(counts, rows, int(runs.bounds[number]))
    between = counts["between"]
    directed = decide(counts["answered"] / between if between else 1.0)
    return _write(runs, directed, dedup, folder, counts)


class _Runs:
    """Files of keys, one for each run of vertices and each direction."""

    def __init__(self, bounds: Ints, folder: Path) -> None:
        self.bounds, self._folder = bounds, folder

    def fill(self, batches: Batches) -> None:
        with ExitStack() as stack:
            files = {
                name: [stack.enter_context(path.open("wb")) for path in self._paths(name)] for name in ("in", "out")
            }
            for sources, targets in batches():
                self._scatter(files["in"], targets, sources)
                self._scatter(files["out"], sources, targets)

    def sort(self) -> None:
        for path in (*self._paths("in"), *self._paths("out")):
            keys = np.fromfile(path, np.int64)
            keys.sort()
            keys.tofile(path)

    def read(self, *, dedup: bool) -> Iterator[tuple[_Rows, int]]:
        """With the number of rows of the run."""
        for ins, outs, first, last in zip(
            self._paths("in"), self._paths("out"), self.bounds[:-1], self.bounds[1:], strict=True
        ):
            yield _joined(_counted(ins, dedup=dedup), _counted(outs, dedup=dedup)), int(last - first)

    def _paths(self, name: str) -> list[Path]:
        return [self._folder / f"run-{number:04d}-{name}" for number in range(len(self.bounds) - 1)]

    def _scatter(self, files: list[Any], rows: Ints, columns: Ints) -> None:
        place = np.searchsorted(self.bounds, rows, side="right") - 1
        keys = (rows - self.bounds[place]) << 32 | columns
        order = np.argsort(place, kind="stable")
        ends = np.searchsorted(place[order], np.arange(len(files) + 1))
        keys = keys[order]
        for number, file in enumerate(files):
            keys[ends[number] : ends[number + 1]].tofile(file)


def _make_runs(batches: Batches, num_nodes: int, folder: Path, memory_bytes: int) -> _Runs:
    if num_nodes >= 2**31:
        raise DatasetError(f"{num_nodes} vertices", "at most 2^31 are sorted on disk", "split the graph")
    degrees = np.zeros(num_nodes, np.int64)
    for sources, targets in batches():
        degrees += np.bincount(sources, minlength=num_nodes)
        degrees += np.bincount(targets, minlength=num_nodes)
    left = memory_bytes - BESIDE_BYTES - num_nodes * VERTEX_BYTES
    needed = -(-int(degrees.sum()) * ENTRY_BYTES // 2) // max(left, 1)
    if left <= 0 or needed > MOST_RUNS:
        least = BESIDE_BYTES + num_nodes * VERTEX_BYTES + int(degrees.sum()) * ENTRY_BYTES // 2 // MOST_RUNS
        raise DatasetError(
            what=f"a memory limit of {memory_bytes / 1e9:.2f} GB for {num_nodes:,} vertices",
            why=f"{VERTEX_BYTES} bytes are held for each, and edges are sorted in at most {MOST_RUNS} runs",
            fix=f"set --memory-limit to {-(-least // 10**8) / 10:.1f}GB at least",
        )
    before = offsets(degrees)
    wanted = np.linspace(0, before[-1], needed + 2)[1:-1]
    runs = _Runs(np.unique(np.concatenate([[0], np.searchsorted(before, wanted), [num_nodes]])), folder)
    runs.fill(batches)
    runs.sort()
    return runs


def _counted(path: Path, *, dedup: bool) -> tuple[Ints, Ints]:
    keys = np.fromfile(path, np.int64)
    starts = _starts(keys)
    counts = np.diff(starts, append=len(keys))
    return keys[starts], np.ones_like(counts) if dedup else counts


def _starts(keys: Ints) -> Ints:
    """Where another key begins."""
    return np.flatnonzero(np.diff(keys, prepend=-1))


def _joined(ins: tuple[Ints, Ints], outs: tuple[Ints, Ints]) -> _Rows:
    keys = np.concatenate([ins[0], outs[0]])
    keys.sort(kind="stable")  # two sorted halves: a merge
    keys = keys[_starts(keys)]
    both = np.zeros((2, len(keys)), np.int64)
    for side, (found, counts) in enumerate((ins, outs)):
        both[side, np.searchsorted(keys, found)] = counts
    return _Rows(keys, both[0], both[1])


def _count(counts: Counter[str], rows: _Rows, first: int) -> None:
    """answered: of `between`, edges between different vertices, each once, those that have their reverse."""
    present = rows.num_in > 0
    counts["edges_raw"] += int(rows.num_in.sum())
    counts["duplicate_edges"] += int(rows.num_in.sum() - present.sum())
    counts["missing"] += int(np.maximum(rows.num_out - rows.num_in, 0).sum())
    counts["missing_of_set"] += int((~present).sum())
    different = (rows.keys >> 32) + first != rows.keys & 0xFFFFFFFF
    counts["self_loops"] += int(rows.num_in[~different].sum())
    counts["between"] += int((present & different).sum())
    counts["answered"] += int((present & different & (rows.num_out > 0)).sum())


def _write(runs: _Runs, directed: bool, dedup: bool, folder: Path, counted: Counter[str]) -> SortedEdges:
    degrees: dict[str, list[Ints]] = {"in": [], "both": [], "out": []}
    symmetric = True
    with (folder / "in_edges").open("wb") as in_file, (folder / "structure").open("wb") as both_file:
        for rows, num_rows in runs.read(dedup=dedup):
            wanted = rows.num_in if directed else np.maximum(rows.num_in, rows.num_out)
            both = rows.num_in + rows.num_out
            symmetric &= not directed or bool((rows.num_in == rows.num_out).all())
            _append(in_file, rows.keys, wanted, num_rows, degrees["in"])
            if directed:
                _append(both_file, rows.keys, both, num_rows, degrees["both"])
                degrees["out"].append(_per_row(rows.keys, rows.num_out, num_rows))
    in_edges = _csr(folder / "in_edges", degrees["in"])
    structure = in_edges if symmetric else _csr(folder / "structure", degrees["both"])
    out = np.concatenate(degrees["out"]) if directed else np.diff(in_edges.indptr)
    counts: dict[str, int | float] = {
        "edges_raw": counted["edges_raw"],
        "duplicate_edges": counted["duplicate_edges"],
        "duplicate_edges_removed": counted["duplicate_edges"] if dedup else 0,
        "reverse_edges_added": 0 if directed else counted["missing_of_set" if dedup else "missing"],
        "edges": len(in_edges.indices),
        "self_loops": counted["self_loops"],
    }
    return SortedEdges(in_edges, structure, out, directed, symmetric, counts)


def _append(file: Any, keys: Ints, times: Ints, num_rows: int, degrees: list[Ints]) -> None:
    np.repeat((keys & 0xFFFFFFFF).astype(np.int32), times).tofile(file)
    degrees.append(_per_row(keys, times, num_rows))


def _per_row(keys: Ints, times: Ints, num_rows: int) -> Ints:
    return np.bincount(keys >> 32, weights=times, minlength=num_rows).astype(np.int64)


def _csr(path: Path, degrees: list[Ints]) -> Csr:
    indptr = offsets(np.concatenate(degrees))
    if not indptr[-1]:
        return Csr(indptr, np.zeros(0, np.int32))
    mapped: npt.NDArray[np.int32] = np.memmap(path, np.int32, "r", shape=(int(indptr[-1]),))
    return Csr(indptr, np.asarray(mapped))

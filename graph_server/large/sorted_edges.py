"""In-edges of every vertex out of an unsorted list, in bounded memory: an external sort into compressed rows.

    degrees -> runs of vertices with edges for one sort -> every edge to the runs of both its ends -> sort run by run

Both directions of an edge meet in the run of a row, so repeats and missing reverse edges are found there, with the same
result as `apply_edge_policies`, weights included. What is held is one run, and a few numbers for each vertex.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from common.errors import DatasetError
from graph_server.graph.csr import Csr, Ints, Weights, offsets
from graph_server.large.runs import Batches, Rows, Runs, answered

ENTRY_BYTES, WEIGHT_BYTES = 300, 100
"""Of one in-edge of a run while it is sorted; its out-edges are counted in. And of its weight, where there are any."""
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
    """Every edge has its reverse, as often and of the same weight."""
    counts: dict[str, int | float]


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


def _make_runs(batches: Batches, num_nodes: int, folder: Path, memory_bytes: int) -> Runs:
    if num_nodes >= 2**31:
        raise DatasetError(f"{num_nodes} vertices", "at most 2^31 are sorted on disk", "split the graph")
    degrees, weighted = np.zeros(num_nodes, np.int64), False
    for sources, targets, weights in batches():
        weighted |= weights is not None
        degrees += np.bincount(sources, minlength=num_nodes)
        degrees += np.bincount(targets, minlength=num_nodes)
    entry_bytes = ENTRY_BYTES + WEIGHT_BYTES * weighted
    left = memory_bytes - BESIDE_BYTES - num_nodes * VERTEX_BYTES
    needed = -(-int(degrees.sum()) * entry_bytes // 2) // max(left, 1)
    if left <= 0 or needed > MOST_RUNS:
        least = BESIDE_BYTES + num_nodes * VERTEX_BYTES + int(degrees.sum()) * entry_bytes // 2 // MOST_RUNS
        raise DatasetError(
            what=f"a memory limit of {memory_bytes / 1e9:.2f} GB for {num_nodes:,} vertices",
            why=f"{VERTEX_BYTES} bytes are held for each, and edges are sorted in at most {MOST_RUNS} runs",
            fix=f"set --memory-limit to {-(-least // 10**8) / 10:.1f}GB at least",
        )
    before = offsets(degrees)
    wanted = np.linspace(0, before[-1], needed + 2)[1:-1]
    bounds = np.unique(np.concatenate([[0], np.searchsorted(before, wanted), [num_nodes]]))
    runs = Runs(bounds, folder, weighted=weighted)
    runs.fill(batches)
    runs.sort()
    return runs


def _count(counts: Counter[str], rows: Rows, first: int) -> None:
    """answered: of `between`, edges between different vertices, each once, those that have their reverse."""
    present = rows.num_in > 0
    counts["edges_raw"] += int(rows.num_in.sum())
    counts["duplicate_edges"] += int(rows.num_in.sum() - present.sum())
    counts["missing"] += int(np.maximum(rows.num_out - rows.num_in, 0).sum())
    counts["missing_of_set"] += int((~present).sum())
    different = (rows.keys >> 32) + first != rows.keys & 0xFFFFFFFF
    counts["self_loops"] += int(rows.num_in[~different].sum())
    counts["between"] += int((present & different).sum())
    counts["of_another_weight"] += rows.of_another_weight
    counts["answered"] += int((present & different & (rows.num_out > 0)).sum())


def _write(runs: Runs, directed: bool, dedup: bool, folder: Path, counted: Counter[str]) -> SortedEdges:
    degrees: dict[str, list[Ints]] = {"in": [], "both": [], "out": []}
    same_structure = same_weights = True
    with (
        (folder / "in_edges").open("wb") as in_file,
        (folder / "structure").open("wb") as both_file,
        (folder / "weights").open("wb") as weights_file,
    ):
        for rows, num_rows in runs.read(dedup=dedup):
            wanted = rows.num_in if directed else np.maximum(rows.num_in, rows.num_out)
            both = rows.num_in + rows.num_out
            same_structure &= not directed or bool((rows.num_in == rows.num_out).all())
            _append(in_file, rows.keys, wanted, num_rows, degrees["in"])
            if weights := _weights(rows, directed):
                weights[0].tofile(weights_file)
                same_weights &= np.array_equal(*weights)
            if directed:
                _append(both_file, rows.keys, both, num_rows, degrees["both"])
                degrees["out"].append(_per_row(rows.keys, rows.num_out, num_rows))
    in_edges = _csr(folder / "in_edges", degrees["in"])
    structure = in_edges if same_structure else _csr(folder / "structure", degrees["both"])
    out = np.concatenate(degrees["out"]) if directed else np.diff(in_edges.indptr)
    if runs.weighted:
        in_edges = in_edges._replace(weights=_mapped(folder / "weights", np.float32, len(in_edges.indices)))
    symmetric = same_structure and same_weights
    return SortedEdges(in_edges, structure, out, directed, symmetric, _told(counted, in_edges, directed, dedup))


def _weights(rows: Rows, directed: bool) -> tuple[Weights, Weights] | None:
    """Of the in-edges and of the out-edges of a run."""
    if rows.in_weights is None or rows.out_weights is None:
        return None
    if directed:
        return rows.in_weights, rows.out_weights
    ins, outs = (rows.num_in, rows.in_weights), (rows.num_out, rows.out_weights)
    return answered(ins, outs), answered(outs, ins)


def _told(counted: Counter[str], in_edges: Csr, directed: bool, dedup: bool) -> dict[str, int | float]:
    counts: dict[str, int | float] = {
        "edges_raw": counted["edges_raw"],
        "duplicate_edges": counted["duplicate_edges"],
        "duplicate_edges_removed": counted["duplicate_edges"] if dedup else 0,
        "reverse_edges_added": 0 if directed else counted["missing_of_set" if dedup else "missing"],
        "edges": len(in_edges.indices),
        "self_loops": counted["self_loops"],
    }
    if dedup and in_edges.weights is not None:
        counts["duplicate_edges_of_another_weight"] = counted["of_another_weight"]
    return counts


def _append(file: Any, keys: Ints, times: Ints, num_rows: int, degrees: list[Ints]) -> None:
    np.repeat((keys & 0xFFFFFFFF).astype(np.int32), times).tofile(file)
    degrees.append(_per_row(keys, times, num_rows))


def _per_row(keys: Ints, times: Ints, num_rows: int) -> Ints:
    return np.bincount(keys >> 32, weights=times, minlength=num_rows).astype(np.int64)


def _csr(path: Path, degrees: list[Ints]) -> Csr:
    indptr = offsets(np.concatenate(degrees))
    return Csr(indptr, _mapped(path, np.int32, int(indptr[-1])))


def _mapped(path: Path, dtype: type[Any], length: int) -> npt.NDArray[Any]:
    if not length:
        return np.zeros(0, dtype)
    mapped: npt.NDArray[Any] = np.memmap(path, dtype, "r", shape=(length,))
    return np.asarray(mapped)

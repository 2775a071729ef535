"""Compressed rows: who reads whom, in the order that fixes every sum.

Row v of an in-edge CSR lists the sources of v's in-edges, ascending, duplicates kept. That order is the order in which
a Gather adds, so it is a promise: `validate` refuses anything else.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from common.errors import DatasetError

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.signedinteger[Any]]
"""int32 or int64"""
Weights = npt.NDArray[np.float32]


class Csr(NamedTuple):
    """indptr   [rows + 1] int64, first entry 0
    indices  [entries] int32 or int64; row v's stand at indptr[v] : indptr[v + 1]
    weights  [entries] float32, or None where every edge counts the same
    """

    indptr: Ints
    indices: Indices
    weights: Weights | None = None

    @property
    def num_rows(self) -> int:
        return len(self.indptr) - 1


class EdgeList(NamedTuple):
    """One directed edge sources[e] -> targets[e] per entry; both [E] int64, below num_nodes; weights as of a Csr."""

    sources: Ints
    targets: Ints
    num_nodes: int
    weights: Weights | None = None


def index_dtype(num_nodes: int) -> type[np.int32] | type[np.int64]:
    """The narrowest of int32 and int64 that holds every id."""
    return np.int32 if num_nodes < 2**31 else np.int64


def group(rows: Indices, columns: Indices, num_rows: int, num_columns: int, *, weights: Weights | None = None) -> Csr:
    """The pairs (row, column) as a CSR: columns ascend within a row, duplicates are kept, in the order they come."""
    counts = np.bincount(rows, minlength=num_rows)
    if max(num_rows, num_columns) >= 2**31:
        order = np.lexsort((columns, rows))
        return Csr(offsets(counts), columns.astype(np.int64)[order], None if weights is None else weights[order])
    # One key per pair: sorting plain integers is several times faster than any sort that moves two arrays.
    keys = rows.astype(np.int64) << 32
    keys |= columns
    if weights is not None:
        order = np.argsort(keys, kind="stable")
        return Csr(offsets(counts), columns[order].astype(np.int32), weights[order])
    keys.sort()
    return Csr(offsets(counts), keys.astype(np.int32))


def transpose(csr: Csr, num_columns: int) -> Csr:
    """The same entries by column; within one, row numbers ascend and duplicates are kept."""
    return group(csr.indices, row_of_entry(csr.indptr), num_columns, csr.num_rows, weights=csr.weights)


def build(edges: EdgeList) -> Csr:
    """In-edges per target: [num_nodes] rows, sources ascending within a row, duplicates kept."""
    return group(edges.targets, edges.sources, edges.num_nodes, edges.num_nodes, weights=edges.weights)


def is_symmetric(csr: Csr) -> bool:
    """True if every edge has its reverse, as often and of the same weight: then in-edges and out-edges are the same
    arrays."""
    other = transpose(csr, csr.num_rows)
    same = np.array_equal(csr.indptr, other.indptr) and np.array_equal(csr.indices, other.indices)
    if csr.weights is None or other.weights is None:
        return same
    return same and np.array_equal(csr.weights, other.weights)


def symmetrised(csr: Csr) -> Csr:
    """The structure with every edge's reverse added, unless it is symmetric already; weights are left out."""
    csr = csr._replace(weights=None)
    if is_symmetric(csr):
        return csr
    rows = row_of_entry(csr.indptr)
    ends = np.concatenate([rows, csr.indices]), np.concatenate([csr.indices, rows])
    return group(*ends, csr.num_rows, csr.num_rows)


def simple(csr: Csr) -> Csr:
    """A copy without self loops and duplicates, and without weights."""
    rows = row_of_entry(csr.indptr)
    keep = rows != csr.indices
    keep[1:] &= (rows[1:] != rows[:-1]) | (csr.indices[1:] != csr.indices[:-1])
    return Csr(offsets(np.bincount(rows[keep], minlength=csr.num_rows)), csr.indices[keep])


def offsets(counts: npt.NDArray[Any]) -> Ints:
    """[n + 1] int64: where each of n runs of these lengths begins, and the end."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def row_of_entry(indptr: Ints) -> Ints:
    """[entries] int64: the row each entry stands in."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def in_degree(csr: Csr) -> Ints:
    """[rows] int64, with multiplicity, explicit self loops included."""
    return np.diff(csr.indptr)


def weight_sums(csr: Csr) -> npt.NDArray[np.float64]:
    """[rows] of the weights of each row's entries, added one by one."""
    assert csr.weights is not None
    sums = np.bincount(row_of_entry(csr.indptr), weights=csr.weights, minlength=csr.num_rows)
    return sums.astype(np.float64, copy=False)


def has_self_loop(csr: Csr, first_row: int = 0) -> Bools:
    """[rows] bool: row v reads itself. `first_row` is the id of row 0, for a block of a larger graph."""
    rows = row_of_entry(csr.indptr)
    found = np.zeros(csr.num_rows, np.bool_)
    found[rows[csr.indices == rows + first_row]] = True
    return found


def validate(indptr: Ints, indices: Indices, num_columns: int) -> None:
    """Raises DatasetError unless offsets fit, indices lie in 0 .. num_columns - 1 and ascend within every row."""
    steps = np.diff(indptr)
    if len(indptr) == 0 or indptr[0] != 0 or (steps < 0).any() or indptr[-1] != len(indices):
        raise damaged_edges(f"row offsets do not cover the {len(indices)} entries in order")
    if len(indices) and not (indices.min() >= 0 and indices.max() < num_columns):
        raise damaged_edges(f"ids reach from {indices.min()} to {indices.max()}, there are {num_columns} vertices")
    descends = indices[1:] < indices[:-1]
    starts = indptr[1:-1][(indptr[1:-1] > 0) & (indptr[1:-1] < len(indices))]
    descends[starts - 1] = False
    if descends.any():
        raise damaged_edges(f"sources descend at entry {int(descends.argmax()) + 1}, within one row")


def damaged_edges(why: str) -> DatasetError:
    return DatasetError(
        what="the edges of a graph folder are damaged", why=why, fix="delete the graph folder; it is built again"
    )

"""Edges out of an adjacency matrix, as SciPy saves it: `adj[i, j]` is the edge i -> j.

    data, indices, indptr, shape, format = csr | csc         data, row, col, shape, format = coo

Order, duplicates and stored zeros are kept. The entries are weights where `edge_weight: data` says so; else those other
than 1 are reported, and not used.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.archives import load_npz, member_names
from graph_server.ingest.edge_weights import checked_weights, weight_array
from graph_server.ingest.memory import check_num_nodes
from graph_server.ingest.raw_graph import Array, EdgeWeights, damaged

DATA = "data"
"""The name of the entries, as `edge_weight` calls them."""
PARTS = (DATA, "indices", "indptr", "row", "col", "shape", "format")


class Adjacency(NamedTuple):
    """sources, targets int64 [E]; num_nodes: the side of the square matrix."""

    sources: Array
    targets: Array
    num_nodes: int
    notes: tuple[str, ...]
    weights: EdgeWeights | None = None


def is_saved_matrix(path: Path) -> bool:
    names = member_names(path)
    return "shape" in names and ({"indices", "indptr"} <= names or {"row", "col"} <= names)


def load_adjacency(path: Path, weight: str | None = None) -> Adjacency:
    """Raises DatasetError for a matrix that is damaged or not square, and for weights that it does not have."""
    arrays, _ = load_npz(path, only=PARTS)
    found = adjacency(arrays, path)
    weights = matrix_weights(arrays.get(DATA), weight, path, len(found.sources))
    return found if weights is None else found._replace(weights=weights, notes=())


def matrix_weights(entries: Array | None, wanted: str | None, path: Path, num_edges: int) -> EdgeWeights | None:
    """Those of a matrix's stored entries, if they are wanted."""
    if wanted is None:
        return None
    names = (DATA,) * (entries is not None)
    values = weight_array(entries if wanted == DATA else None, wanted, path, num_edges=num_edges, names=names)
    return checked_weights(values, path)


def adjacency(arrays: Mapping[str, Array], path: Path) -> Adjacency:
    """The pieces by their names in a saved file."""
    num_nodes = _side(arrays, path)
    if "row" in arrays and "col" in arrays:
        ends = (_whole(arrays, "row", path), _whole(arrays, "col", path))
    else:
        ends = _compressed(arrays, num_nodes, path)
    sources, targets = reversed(ends) if _format(arrays) == "csc" else ends
    if sources.shape != targets.shape:
        raise damaged(path, f"row has {len(sources)} entries, col {len(targets)}")
    for rows in (sources, targets):
        if len(rows) and (int(rows.min()) < 0 or int(rows.max()) >= num_nodes):
            place = int(np.flatnonzero((rows < 0) | (rows >= num_nodes))[0])
            raise damaged(path, f"edge {place}: vertex {rows[place]} does not exist; vertices are 0 .. {num_nodes - 1}")
    return Adjacency(sources, targets, num_nodes, weight_notes(arrays.get("data"), path))


def weight_notes(weights: Array | None, path: Path) -> tuple[str, ...]:
    if weights is None or weights.dtype.kind not in "biuf" or not weights.size or (weights == 1).all():
        return ()
    low, high = weights.min(), weights.max()
    return (f"{path.name}: edges have weights from {low} to {high}: reported and not used",)


def _side(arrays: Mapping[str, Array], path: Path) -> int:
    shape = arrays.get("shape", np.zeros(0)).reshape(-1)
    if len(shape) != 2 or shape.dtype.kind not in "iu" or int(shape.min()) < 0:
        raise damaged(path, f"its shape is {shape.tolist()}; needed: two whole numbers")
    if shape[0] != shape[1]:
        raise DatasetError(
            what=f"{path} is a matrix of {shape[0]} x {shape[1]}",
            why="an adjacency has one row and one column for each vertex; this may join two kinds of vertices",
            fix="give a square matrix",
        )
    check_num_nodes(int(shape[0]), path)
    return int(shape[0])


def _format(arrays: Mapping[str, Array]) -> str:
    kind = arrays.get("format", np.array(b"csr")).reshape(-1)[:1].tolist()
    return kind[0].decode("ascii", "replace") if kind and isinstance(kind[0], bytes) else str(kind[0] if kind else "")


def _compressed(arrays: Mapping[str, Array], num_nodes: int, path: Path) -> tuple[Array, Array]:
    indptr, indices = _whole(arrays, "indptr", path), _whole(arrays, "indices", path)
    steps = np.diff(indptr)
    if len(indptr) != num_nodes + 1 or indptr[0] != 0 or (steps < 0).any() or indptr[-1] != len(indices):
        raise damaged(path, f"indptr does not cut {len(indices)} indices into {num_nodes} rows")
    return np.repeat(np.arange(num_nodes, dtype=np.int64), steps), indices


def _whole(arrays: Mapping[str, Array], name: str, path: Path) -> Array:
    array = arrays.get(name)
    if array is None or array.ndim != 1 or array.dtype.kind not in "iu":
        raise damaged(path, f"{name} is {'missing' if array is None else f'{array.dtype} of shape {array.shape}'}")
    return array.astype(np.int64, copy=False)

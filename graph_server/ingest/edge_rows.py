"""From edges by the user's ids to edges by rows: what names no vertex is an error, or dropped and counted."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from graph_server.ingest.edge_text import EdgeTable
from graph_server.ingest.edge_weights import checked_weights, joined
from graph_server.ingest.ids import exact_ids
from graph_server.ingest.node_index import NodeIndex, unknown_ids
from graph_server.ingest.raw_graph import Array, EdgeWeights, damaged


class RowEdges(NamedTuple):
    """sources, targets int64 [E]; notes on them; weights, where a table has them."""

    sources: Array
    targets: Array
    notes: tuple[str, ...]
    weights: EdgeWeights | None


def edge_rows(tables: Sequence[EdgeTable], index: NodeIndex, drop: bool) -> tuple[Array, Array, tuple[str, ...]]:
    """sources, targets int64 [E] of all tables, one after the other, and the notes on them."""
    return weighted_edge_rows(tables, index, drop)[:3]


def weighted_edge_rows(tables: Sequence[EdgeTable], index: NodeIndex, drop: bool) -> RowEdges:
    """The same, with their weights. Raises DatasetError for weights that cannot be used."""
    parts = [_rows_of(table, index, drop) for table in tables]
    if len(parts) == 1:
        return parts[0]
    sources, targets = (np.concatenate([part[end] for part in parts]) for end in (0, 1))
    notes = tuple(note for part in parts for note in part.notes)
    return RowEdges(sources, targets, notes, joined([part.weights for part in parts]))


def row_edges(
    path: Path, sources: Array, targets: Array, num_nodes: int, *, drop: bool
) -> tuple[Array, Array, tuple[str, ...]]:
    """Edges whose ends are rows already: only their range is checked."""
    return weighted_edge_rows([row_table(path, sources, targets)], NodeIndex(np.arange(num_nodes)), drop)[:3]


def row_table(path: Path, sources: Array, targets: Array, weights: Array | None = None) -> EdgeTable:
    """Of such edges, counted from 0."""
    if sources.shape != targets.shape or sources.ndim != 1:
        raise damaged(path, f"sources have shape {sources.shape}, targets {targets.shape}")
    ends = [exact_ids(end, path) for end in (sources, targets)]
    return EdgeTable(path, ends[0], ends[1], np.arange(len(sources)), unit="edge", weights=weights)


def _rows_of(edges: EdgeTable, index: NodeIndex, drop: bool) -> RowEdges:
    sources, targets = index.rows(edges.sources), index.rows(edges.targets)
    known = (sources >= 0) & (targets >= 0)
    if known.all():
        return RowEdges(sources, targets, edges.notes, _weights(edges, slice(None)))
    if not drop:
        bad = np.flatnonzero(~known)
        ids = np.concatenate([edges.sources[bad][sources[bad] < 0], edges.targets[bad][targets[bad] < 0]])
        lines = np.concatenate([edges.lines[bad][sources[bad] < 0], edges.lines[bad][targets[bad] < 0]])
        order = np.argsort(lines, kind="stable")
        one_based = _is_one_based(edges, index)
        raise unknown_ids(index, ids[order], lines[order], edges.path, where=edges.unit, one_based=one_based)
    note = f"{edges.path.name}: {int((~known).sum())} of {len(known)} edges name a vertex that does not exist: dropped"
    return RowEdges(sources[known], targets[known], (*edges.notes, note), _weights(edges, known))


def _weights(edges: EdgeTable, kept: Array | slice) -> EdgeWeights | None:
    if edges.weights is None:
        return None
    return checked_weights(edges.weights[kept], edges.path, lines=edges.lines[kept], unit=edges.unit)


def _is_one_based(edges: EdgeTable, index: NodeIndex) -> bool:
    ends = (edges.sources, edges.targets)
    if any(end.dtype.kind != "i" for end in ends):
        return False
    return min(int(end.min()) for end in ends) == 1 and max(int(end.max()) for end in ends) == index.num_nodes

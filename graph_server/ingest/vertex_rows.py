"""From tables that name vertices to rows: which vertices there are, and where each label belongs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.edge_text import EdgeTable
from graph_server.ingest.ids import distinct_ids
from graph_server.ingest.label_tables import LabelTable
from graph_server.ingest.node_index import NodeIndex, refuse_negative, unique_index, unknown_ids
from graph_server.ingest.raw_graph import Array


def index_of_ends(tables: Sequence[EdgeTable], labels: LabelTable | None = None, *, negative: bool) -> NodeIndex:
    """Every vertex that an edge or a label names; sorted. Raises DatasetError for negative ids not asked for."""
    for table in tables if not negative else ():
        for end in (table.sources, table.targets):
            refuse_negative(end, table.lines, table.path, table.unit)
    others = None if labels is None else labels.ids
    ends = [end for table in tables for end in (table.sources, table.targets)]
    return NodeIndex(distinct_ids([*ends, *([] if others is None else [others])]))


def label_rows(labels: LabelTable, index: NodeIndex, path: Path) -> Array:
    """The vertex of each label row. A vertex without a row is unlabelled, when labels have ids."""
    if labels.ids is None:
        num_rows = len(labels.values) if labels.values.ndim else 0
        if num_rows != index.num_nodes:
            raise DatasetError(
                what=f"{path} has {num_rows} rows for {index.num_nodes} vertices",
                why="without an id column row i is the label of vertex i; blank lines do not count",
                fix="give every vertex a row (-1 = unlabelled), or add an `id` column",
            )
        return np.arange(index.num_nodes)
    if not len(labels.ids):
        return np.zeros(0, dtype=np.int64)
    unique_index(labels.ids, labels.lines, path, negative=index.has_negative)
    rows = index.rows(labels.ids)
    if (rows < 0).any():
        raise unknown_ids(index, labels.ids[rows < 0], labels.lines[rows < 0], path, where="line")
    return rows


def spread(values: Array, rows: Array, num_nodes: int) -> Array:
    """Label rows to vertex rows; the rest is unlabelled."""
    if len(rows) == num_nodes and (rows == np.arange(num_nodes)).all():
        return values
    values = values.astype(np.int64) if values.dtype.kind == "u" else values
    if values.dtype.kind == "U":
        places = np.zeros((num_nodes, *values.shape[1:]), dtype=values.dtype)
    else:
        places = np.full((num_nodes, *values.shape[1:]), -1 if values.dtype.kind == "i" else np.nan, dtype=values.dtype)
    places[rows] = values
    return places

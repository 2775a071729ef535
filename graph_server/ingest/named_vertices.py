"""The vertices that a list of edges names, when nothing else lists them: found piece by piece, and held."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.edge_text import id_pieces
from graph_server.ingest.ids import distinct_ids
from graph_server.ingest.node_index import NodeIndex, refuse_negative
from graph_server.ingest.raw_graph import Array

HELD_AT_ONCE = 6
"""Times the bytes of the ids: those known, those found since, and both while they are sorted together."""
_FRESH = 1 << 20


def named_vertices(files: Sequence[Path], *, negative: bool, most_bytes: int) -> NodeIndex:
    """Sorted. One text among the ids makes all of them texts.

    Raises DatasetError if they take more than `most_bytes`, for no edge, and for negative ids not asked for.
    """
    ids = _found(files, negative, most_bytes, as_text=False)
    ids = _found(files, negative, most_bytes, as_text=True) if ids is None else ids
    assert ids is not None, "every id is a text"
    if not len(ids):
        raise DatasetError(
            what=f"{files[0]} holds no edge",
            why="the vertices are those that edges name",
            fix="give at least one edge, or features with one row per vertex",
        )
    return NodeIndex(ids)


def _found(files: Sequence[Path], negative: bool, most_bytes: int, *, as_text: bool) -> Array | None:
    """None where there are ids that are no whole numbers."""
    known: Array = np.zeros(0, np.str_ if as_text else np.int64)
    fresh: list[Array] = []
    for file in files:
        for table in id_pieces(file, as_text):
            if table is None:
                return None
            for end in (table.sources, table.targets):
                if not negative:
                    refuse_negative(end, table.lines, file, table.unit)
                fresh.append(distinct_ids([end]))
            if sum(map(len, fresh)) > max(_FRESH, len(known)):
                known, fresh = _joined(known, fresh, file, most_bytes), []
    return _joined(known, fresh, files[-1], most_bytes)


def _joined(known: Array, fresh: list[Array], file: Path, most_bytes: int) -> Array:
    joined, as_numbers = distinct_ids([known, *fresh]), known.dtype.kind == "i"
    if joined.nbytes * HELD_AT_ONCE > most_bytes:
        raise DatasetError(
            what=f"{file} names {len(joined):,} vertices and more, whose ids take {joined.nbytes / 1e9:.2f} GB",
            why=f"ids are held, {HELD_AT_ONCE} times while they are sorted, in {max(most_bytes, 0) / 1e9:.2f} GB",
            fix="raise --memory-limit" + ("" if as_numbers else ", or number the vertices: texts take more room"),
        )
    return joined

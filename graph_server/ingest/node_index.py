"""From the user's vertex ids to rows, and the error for those that name no vertex."""

from pathlib import Path

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.raw_graph import Array


class NodeIndex:
    """Looks rows up by id. Ids are int64 or str, all different."""

    def __init__(self, node_ids: Array) -> None:
        self.node_ids = node_ids
        self.is_text = node_ids.dtype.kind == "U"
        self.counts_from_zero = not self.is_text and bool((node_ids == np.arange(len(node_ids))).all())
        self._order = node_ids if self.counts_from_zero else np.argsort(node_ids, kind="stable")
        self._sorted = node_ids if self.counts_from_zero else node_ids[self._order]

    @property
    def has_negative(self) -> bool:
        return not self.is_text and bool(len(self._sorted)) and int(self._sorted[0]) < 0

    @property
    def num_nodes(self) -> int:
        return len(self.node_ids)

    def rows(self, ids: Array) -> Array:
        """int64 row of each id, -1 where there is none. Among texts, those that are whole numbers can match numbers."""
        if self.is_text != (ids.dtype.kind == "U"):
            return np.full(len(ids), -1, dtype=np.int64) if self.is_text else self._rows_of_texts(ids)
        if self.counts_from_zero:
            if not len(ids) or (ids.min() >= 0 and ids.max() < len(self.node_ids)):
                return ids
            return np.where((ids >= 0) & (ids < len(self.node_ids)), ids, -1)
        place = np.searchsorted(self._sorted, ids)
        place = np.minimum(place, len(self._sorted) - 1)
        return np.where(self._sorted[place] == ids, self._order[place], -1)

    def _rows_of_texts(self, ids: Array) -> Array:
        """One odd id makes a whole file's ids texts; the others are still what they look like."""
        rows = np.full(len(ids), -1, dtype=np.int64)
        digits = np.char.isdecimal(np.char.lstrip(ids, "-")) & (np.char.count(ids, "-") <= 1)
        whole = np.flatnonzero(digits & (np.char.str_len(ids) <= 18))
        numbers = ids[whole].astype(np.int64)
        same = numbers.astype(np.str_) == ids[whole]
        rows[whole[same]] = self.rows(numbers[same])
        return rows


def unique_index(node_ids: Array, lines: Array, path: Path, unit: str = "line", *, negative: bool = False) -> NodeIndex:
    """Raises DatasetError when there is no vertex, when two rows bear one id, and for negative ids not asked for."""
    if not len(node_ids):
        raise DatasetError(
            what=f"{path} holds no vertex", why="there is nothing to train on", fix="give one row per vertex"
        )
    if not negative:
        refuse_negative(node_ids, lines, path, unit)
    index = NodeIndex(node_ids)
    repeats = np.flatnonzero(index._sorted[1:] == index._sorted[:-1])
    if len(repeats):
        first, second = index._order[repeats[0]], index._order[repeats[0] + 1]
        where = f"{path}:{lines[second]}" if unit == "line" else f"{path}: {unit} {lines[second]}"
        raise DatasetError(
            what=f"{where}: vertex {node_ids[second]} stands on {unit} {lines[first]} already",
            why=f"{len(repeats)} rows repeat an id, and only one row can be the vertex's",
            fix="keep one row per vertex",
        )
    return index


def refuse_negative(ids: Array, lines: Array, path: Path, unit: str) -> None:
    """Raises DatasetError naming the first; texts are never negative."""
    below = np.flatnonzero(ids < 0) if ids.dtype.kind == "i" else ()
    if len(below):
        line = lines[below[0]]
        where = f"{path}:{line}" if unit == "line" else f"{path}: {unit} {line}"
        raise DatasetError(
            what=f"{where}: the id {ids[below[0]]} is negative ({len(below)} of {len(ids)} are)",
            why="a negative id is usually an overflow, or a mark for 'missing'",
            fix=f"correct the {unit}, or, if they are meant, set dataset.negative_ids: true",
        )


def unknown_ids(
    index: NodeIndex, ids: Array, lines: Array, path: Path, *, where: str, one_based: bool = False
) -> DatasetError:
    """The error for ids that name no vertex: the first ten with their lines, and 1-based ids recognised.

    ids, lines   [n] each: the unknown ids and where they stand
    """
    shown = "; ".join(
        f"{where} {line}: {value}" for value, line in zip(ids[:10].tolist(), lines[:10].tolist(), strict=True)
    )
    num_nodes = len(index.node_ids)
    if index.counts_from_zero:
        known = f"the {num_nodes} rows have no ids of their own, so vertices are 0 .. {num_nodes - 1}"
    elif index.is_text:
        known = f"the {num_nodes} vertices have text ids such as {index.node_ids[0]}"
    else:
        known = f"the {num_nodes} vertices have ids from {index.node_ids.min()} to {index.node_ids.max()}"
    return DatasetError(
        what=f"{path.name} names {len(ids)} times a vertex that does not exist: {shown}"
        + ("; ..." if len(ids) > 10 else ""),
        why=known,
        fix=(
            f"the ids look 1-based (1 .. {num_nodes}): subtract 1, or give the features an id column"
            if one_based and index.counts_from_zero
            else "add these vertices to the features, correct the ids, or set dataset.drop_unknown_edges"
        ),
    )

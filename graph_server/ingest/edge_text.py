"""Edges out of text: two ids a line, perhaps a weight; other columns are reported and ignored.

A file is read in pieces of whole lines, so its length does not matter. Ids are int64 when every one is a whole
number, else text, each as it is written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.archives import load_npy
from graph_server.ingest.edge_pieces import PieceEdges, Place, joined_pieces, line_end, piece_edges
from graph_server.ingest.edge_weights import ignored_columns, no_such_weights
from graph_server.ingest.ids import exact_ids
from graph_server.ingest.raw_graph import Array
from graph_server.ingest.text import (
    Line,
    is_comment_or_blank,
    is_number,
    lines_of,
    one_line_end,
    read_head,
    refuse_binary,
    text_pieces,
)

SOURCE_HEADERS = ("source", "src", "from", "u", "src_id", "source_id", "sourcenodeid", "fromnodeid", "node1", "head")
TARGET_HEADERS = ("target", "dst", "to", "v", "dst_id", "target_id", "targetnodeid", "tonodeid", "node2", "tail")

_PIECE_BYTES, _PIECE_ROWS = 4 << 20, 1 << 20
_HEAD_BYTES = 1 << 20


class _Layout(NamedTuple):
    """What the first lines say."""

    header: Line | None
    columns: tuple[int, int]
    skip: int
    """Lines above the first edge."""
    width: int | None
    """Fields of a line; None: the first edge tells."""
    weight: int | None = None
    """The column of weights, where one is wanted."""


@dataclass(frozen=True)
class EdgeTable:
    """Edges by the user's ids."""

    path: Path
    sources: Array
    targets: Array
    """[E] int64, or str when any id is not a whole number."""
    lines: Array
    """[E] the line, or the row of an array file, that each edge stands on."""
    notes: tuple[str, ...] = ()
    unit: str = "line"
    """What `lines` counts."""
    weights: Array | None = None
    """[E] numbers as they stand in the column of weights; None where none is wanted."""


def read_edges(path: Path, as_text: bool = False, weight: str | None = None) -> EdgeTable:
    """`.npy` or text; what packs either is opened. `as_text` keeps whole numbers as they are written. `weight`: the
    name of a column, or its number, counted from 1.
    """
    if ".npy" in path.suffixes:
        if weight is not None:
            raise no_such_weights(weight, path, ())
        return _from_array(path, load_npy(path))
    return _either(path, _layout(path, weight), as_text)


def read_edges_below(path: Path, header_line: int, width: int, weight: int | None = None) -> EdgeTable:
    """Text whose first edge stands below a line that is known, with `width` fields on each line."""
    return _either(path, _Layout(None, (0, 1), header_line, width, weight), as_text=False)


def _either(path: Path, layout: _Layout, as_text: bool) -> EdgeTable:
    table = _read_text(path, layout, as_text=as_text)
    table = _read_text(path, layout, as_text=True) if table is None else table
    assert table is not None, "every id is a text"
    return table


def _layout(path: Path, weight: str | None = None) -> _Layout:
    head = one_line_end(read_head(path, _HEAD_BYTES))
    refuse_binary(head, path)
    header = _leading_header(head, path)
    if header is None:
        found = _Layout(None, (0, 1), _skip_leading(head)[0], None)
        first = next(lines_of_head(head, path), None)
    else:
        found, first = _Layout(header, _columns(header), header.number, len(header.fields)), header
    return found if weight is None else found._replace(weight=_weight_column(weight, found, first, path))


def _weight_column(wanted: str, layout: _Layout, first: Line | None, path: Path) -> int:
    names = () if first is None else first.fields if layout.header else tuple(map(str, range(1, len(first.fields) + 1)))
    others = {name: column for column, name in enumerate(names) if column not in layout.columns}
    others |= {str(column + 1): column for column in others.values() if str(column + 1) not in others}
    if wanted not in others:
        raise no_such_weights(wanted, path, [name for name in names if name in others])
    return others[wanted]


def _read_text(path: Path, layout: _Layout, *, as_text: bool) -> EdgeTable | None:
    """None when whole numbers were expected and there are others."""
    joined = joined_pieces(_pieces(path, layout, as_text=as_text), layout.width, layout.weight is not None, as_text)
    if joined is None:
        return None
    notes = _notes(path, layout, joined.width)
    return EdgeTable(path, joined.sources, joined.targets, joined.lines, notes, weights=joined.weights)


def _pieces(path: Path, layout: _Layout, *, as_text: bool) -> Iterator[PieceEdges | None]:
    """Those with edges; None where whole numbers were expected and there are others."""
    width, before = layout.width, 0
    for piece in text_pieces(path, _PIECE_BYTES):
        body, skipped = _below(piece, layout.skip - before)
        found = piece_edges(body, Place(path, before + skipped + 1, layout.columns, width, layout.weight), as_text)
        if found is None or len(found.lines):
            width = width if found is None else found.width
            yield found
        before += piece.count(b"\n")


def edge_pieces(path: Path, as_text: bool, weight: str | None = None) -> Iterator[EdgeTable]:
    """The same edges, piece by piece. Raises DatasetError where ids are no whole numbers, unless `as_text`."""
    for found in id_pieces(path, as_text, weight):
        if found is None:
            raise DatasetError(
                what=f"{path} names vertices by texts",
                why="the vertices that are listed have whole numbers for ids",
                fix="write the ids of edges and vertices alike",
            )
        yield found


def id_pieces(path: Path, as_text: bool, weight: str | None = None) -> Iterator[EdgeTable | None]:
    """The same; None where whole numbers were expected and there are others. The first piece has the file's notes."""
    if ".npy" in path.suffixes:
        if weight is not None:
            raise no_such_weights(weight, path, ())
        yield from _array_pieces(path)
        return
    layout = _layout(path, weight)
    notes: tuple[str, ...] | None = None
    for found in _pieces(path, layout, as_text=as_text):
        if found is None:
            yield None
            return
        notes = _notes(path, layout, found.width) if notes is None else ()
        yield EdgeTable(path, found.sources, found.targets, found.lines, notes, weights=found.weights)


def _array_pieces(path: Path) -> Iterator[EdgeTable]:
    """A file that nothing packs is mapped."""
    ends = ends_of_array(load_npy(path, mapped=True), path)
    for start in range(0, len(ends[0]), _PIECE_ROWS):
        sources, targets = (exact_ids(np.array(end[start : start + _PIECE_ROWS]), path) for end in ends)
        yield EdgeTable(path, sources, targets, np.arange(start, start + len(sources)), unit="row")


def _below(piece: bytes, skip: int) -> tuple[bytes, int]:
    """The piece without its first `skip` lines, and how many there were."""
    offset = count = 0
    while count < skip and offset < len(piece):
        offset, count = line_end(piece, offset), count + 1
    return piece[offset:], count


def _from_array(path: Path, values: Array) -> EdgeTable:
    sources, targets = (exact_ids(end, path) for end in ends_of_array(values, path))
    rows = np.arange(len(sources))
    return EdgeTable(path, np.ascontiguousarray(sources), np.ascontiguousarray(targets), rows, unit="row")


def ends_of_array(values: Array, path: Path, is_pair_of_rows: bool = False) -> tuple[Array, Array]:
    """sources, targets [E] out of an array (2, E) or (E, 2); which of them (2, 2) is, its name may tell."""
    if values.ndim != 2 or 2 not in values.shape:
        raise DatasetError(
            what=f"{path} has edges of shape {values.shape}",
            why="edges are an array of shape (2, E) or (E, 2)",
            fix="save it as numpy.save(file, numpy.stack([sources, targets]))",
        )
    if values.shape == (2, 2) and not is_pair_of_rows:
        raise DatasetError(
            what=f"{path} has edges of shape (2, 2)",
            why="it may be two edges as rows or as columns",
            fix="write these two edges as text, one a line",
        )
    ends = values if values.shape[0] == 2 else values.T
    return ends[0], ends[1]


def _skip_leading(data: bytes) -> tuple[int, int]:
    """How many lines of comments and blanks come first, and where the rest begins."""
    count = offset = 0
    while offset < len(data):
        end = line_end(data, offset)
        if not is_comment_or_blank(data[offset:end]):
            break
        count, offset = count + 1, end
    return count, offset


def _leading_header(data: bytes, path: Path) -> Line | None:
    """The first line, when it names columns: known names, or words over a line of numbers."""
    lines = lines_of_head(data, path)
    first, second = next(lines, None), next(lines, None)
    if first is None or len(first.fields) < 2:
        return None
    names = [field.lower().replace("_", "").lstrip("~:") for field in first.fields]
    if _position(names, SOURCE_HEADERS) is not None and _position(names, TARGET_HEADERS) is not None:
        return first
    words = not any(is_number(field) for field in first.fields[:2])
    numbers = second is not None and len(second.fields) > 1 and all(is_number(field) for field in second.fields[:2])
    return first if words and numbers else None


def lines_of_head(data: bytes, path: Path) -> Iterator[Line]:
    """The first lines only, so that looking at a large file's head stays cheap."""
    _, offset = _skip_leading(data)
    end = line_end(data, offset)
    while end < len(data) and is_comment_or_blank(data[end : line_end(data, end)]):
        end = line_end(data, end)
    return lines_of(data[: line_end(data, end)], path)


def _position(names: list[str], known: tuple[str, ...]) -> int | None:
    spelled = {name.replace("_", "") for name in known}
    return next((index for index, name in enumerate(names) if name in spelled), None)


def _columns(header: Line) -> tuple[int, int]:
    names = [field.lower().replace("_", "").lstrip("~:") for field in header.fields]
    source, target = _position(names, SOURCE_HEADERS), _position(names, TARGET_HEADERS)
    return (0, 1) if source is None or target is None else (source, target)


def _notes(path: Path, layout: _Layout, width: int) -> tuple[str, ...]:
    notes, header = [], layout.header
    if header is not None:
        notes.append(f"{path.name}: line {header.number} was read as a header: {header.text}")
    others = [
        header.fields[index] if header is not None and index < len(header.fields) else str(index + 1)
        for index in range(width)
        if index not in (*layout.columns, layout.weight)
    ]
    if others:
        notes.append(f"{path.name}: {ignored_columns(others, layout.weight is not None)}")
    return tuple(notes)

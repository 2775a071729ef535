"""Edges out of text: two ids a line, a third column reported and ignored.

Files of plain integers are parsed in pieces with NumPy; the first thing that is not plain sends the whole file to the
line-by-line reader, which names the line it stumbles over. Both give the same edges.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.archives import load_npy
from graph_server.ingest.ids import exact_ids, parse_ids, text_ids
from graph_server.ingest.raw_graph import Array
from graph_server.ingest.text import Line, is_comment_or_blank, is_number, line_error, lines_of, read_text_bytes

SOURCE_HEADERS = ("source", "src", "from", "u", "src_id", "source_id", "sourcenodeid", "fromnodeid", "node1", "head")
TARGET_HEADERS = ("target", "dst", "to", "v", "dst_id", "target_id", "targetnodeid", "tonodeid", "node2", "tail")

_PLAIN = b"0123456789 \t,\n"
_BLANKS = bytes.maketrans(b",\t", b"  ")
_PIECE_BYTES = 16 << 20
_SAFE_DIGITS = 18


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


def read_edges(path: Path, as_text: bool = False) -> EdgeTable:
    """`.npy` or text; a `.gz` around either is opened. `as_text` keeps whole numbers as they are written."""
    if ".npy" in path.suffixes:
        return _from_array(path, load_npy(path))
    data = read_text_bytes(path)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    first, offset = _skip_leading(data)
    header = _leading_header(data, path)
    if header is not None:
        first, offset = header.number, _line_end(data, offset)
    columns = _columns(header)
    plain = _plain_table(data[offset:], first) if columns == (0, 1) and not as_text else None
    if plain is None:
        return _slow_table(data, path, header, columns, as_text=as_text)
    values, lines = plain
    return EdgeTable(path, values[:, 0], values[:, 1], lines, _notes(path, header, columns, values.shape[1]))


def _from_array(path: Path, values: Array) -> EdgeTable:
    if values.ndim != 2 or 2 not in values.shape:
        raise DatasetError(
            what=f"{path} has shape {values.shape}",
            why="edges are an array of shape (2, E) or (E, 2)",
            fix="save it as numpy.save(file, numpy.stack([sources, targets]))",
        )
    if values.shape == (2, 2):
        raise DatasetError(
            what=f"{path} has shape (2, 2)",
            why="it may be two edges as rows or as columns",
            fix="write these two edges as text, one a line",
        )
    ids = exact_ids(values, path)
    sources, targets = ids if ids.shape[0] == 2 else ids.T
    return EdgeTable(path, np.ascontiguousarray(sources), np.ascontiguousarray(targets), np.arange(len(sources)))


def _line_end(data: bytes, offset: int) -> int:
    end = data.find(b"\n", offset)
    return len(data) if end < 0 else end + 1


def _skip_leading(data: bytes) -> tuple[int, int]:
    """How many lines of comments and blanks come first, and where the rest begins."""
    count = offset = 0
    while offset < len(data):
        end = _line_end(data, offset)
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
    end = _line_end(data, offset)
    while end < len(data) and is_comment_or_blank(data[end : _line_end(data, end)]):
        end = _line_end(data, end)
    return lines_of(data[: _line_end(data, end)], path)


def _position(names: list[str], known: tuple[str, ...]) -> int | None:
    spelled = {name.replace("_", "") for name in known}
    return next((index for index, name in enumerate(names) if name in spelled), None)


def _columns(header: Line | None) -> tuple[int, int]:
    if header is None:
        return 0, 1
    names = [field.lower().replace("_", "").lstrip("~:") for field in header.fields]
    source, target = _position(names, SOURCE_HEADERS), _position(names, TARGET_HEADERS)
    return (0, 1) if source is None or target is None else (source, target)


def _notes(path: Path, header: Line | None, columns: tuple[int, int], width: int) -> tuple[str, ...]:
    notes = []
    if header is not None:
        notes.append(f"{path.name}: line {header.number} was read as a header: {header.text}")
    others = [
        header.fields[index] if header is not None and index < len(header.fields) else str(index + 1)
        for index in range(width)
        if index not in columns
    ]
    if others:
        notes.append(f"{path.name}: column {', '.join(others)} ignored; edges have no weights here")
    return tuple(notes)


def _plain_table(body: bytes, lines_before: int) -> tuple[Array, Array] | None:
    """int64 [E, k] and the line of each row, when the body is nothing but integers and separators; else None."""
    if body.translate(None, _PLAIN) or _has_empty_fields(body):
        return None
    tables, all_lines = [], []
    for piece in _pieces(body):
        parsed = _plain_piece(piece.translate(_BLANKS))
        if parsed is None:
            return None
        values, lines = parsed
        if len(values):
            tables.append(values)
            all_lines.append(lines + lines_before + 1)
        lines_before += piece.count(b"\n")
    if len({table.shape[1] for table in tables}) > 1:
        return None
    if not tables:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64)
    return np.concatenate(tables), np.concatenate(all_lines)


def _has_empty_fields(body: bytes) -> bool:
    """Two commas, or two tabs, with nothing between them, or one at the end of a line: an id is missing there."""
    if b"," in body:
        dense = body.translate(None, b" \t")
        if dense[:1] == b"," or dense[-1:] == b"," or any(mark in dense for mark in (b",,", b",\n", b"\n,")):
            return True
    if b"\t" in body:
        dense = body.translate(None, b" ")
        return dense[-1:] == b"\t" or b"\t\t" in dense or b"\t\n" in dense
    return False


def _pieces(body: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(body):
        end = _line_end(body, min(start + _PIECE_BYTES, len(body)))
        yield body[start:end]
        start = end


def _plain_piece(text: bytes) -> tuple[Array, Array] | None:
    characters = np.frombuffer(b" " + text + b" ", dtype=np.uint8)
    edges = np.diff((characters > 32).view(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not len(starts):
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64)
    newlines = np.flatnonzero(characters[1:] == 10)
    line_of_token = np.searchsorted(newlines, starts)
    lines, counts = np.unique(line_of_token, return_counts=True)
    width = int(counts[0])
    if width < 2 or (counts != width).any() or int((ends - starts).max()) > _SAFE_DIGITS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = np.fromstring(text.decode("ascii"), dtype=np.int64, sep=" ")
    return values.reshape(-1, width), lines


def _slow_table(data: bytes, path: Path, header: Line | None, columns: tuple[int, int], *, as_text: bool) -> EdgeTable:
    width = None if header is None else len(header.fields)
    sources: list[str] = []
    targets: list[str] = []
    lines: list[int] = []
    for line in lines_of(data, path):
        if header is not None and line.number == header.number:
            continue
        width = len(line.fields) if width is None else width
        if len(line.fields) < 2 or len(line.fields) != width:
            raise line_error(path, line.number, line.text, f"has {len(line.fields)} fields, not {max(width, 2)}")
        source, target = (line.fields[column] for column in columns)
        if not source or not target:
            raise line_error(path, line.number, line.text, "lacks a vertex id")
        sources.append(source)
        targets.append(target)
        lines.append(line.number)
    ids = (text_ids if as_text else parse_ids)(sources + targets, lines + lines, path)
    return EdgeTable(
        path,
        ids[: len(sources)],
        ids[len(sources) :],
        np.array(lines, dtype=np.int64),
        _notes(path, header, columns, width or 2),
    )

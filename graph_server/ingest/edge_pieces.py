"""One piece of a text of edges, by the fastest reader that understands it; all three give the same edges.

    table     one separator, no quotes, comments or blank lines: Arrow
    plain     integers and separators only: NumPy
    careful   everything else, line by line: it names the line it stumbles over

A piece is bounded, so no reader ever holds more than a piece as Python objects.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow
import pyarrow.csv

from graph_server.ingest.growing_column import GrowingColumn
from graph_server.ingest.ids import LONGEST_TEXT, longest, parse_ids, text_ids
from graph_server.ingest.raw_graph import Array
from graph_server.ingest.text import COMMENTS, Line, is_number, line_error, lines_of

_PLAIN = b"0123456789 \t,\n"
_BLANKS = bytes.maketrans(b",\t", b"  ")
_SAFE_DIGITS = 18
_CAREFUL_BYTES = 1 << 20
_TABLE_BYTES = 1 << 20
"""What Arrow parses at a time: more than this falls out of the processor's caches."""
_NUMBERS = b"0123456789.+-eE\n"
"""A piece of these and its separator holds no comment, quote or hexadecimal number, so nothing has to be looked for."""


class Place(NamedTuple):
    """Where a piece stands, and what the lines before it said."""

    path: Path
    first_line: int
    columns: tuple[int, int]
    """Of the source and the target."""
    width: int | None
    """Fields of a line; None: the piece's first line tells."""
    weight: int | None = None
    """The column of the weight, where one is wanted."""

    @property
    def last(self) -> int:
        """The last column that is read."""
        return max(*self.columns, -1 if self.weight is None else self.weight)


class PieceEdges(NamedTuple):
    """sources, targets [E] int64 or str; lines int64 [E]; width: fields of a line; weights float64 [E], if wanted."""

    sources: Array
    targets: Array
    lines: Array
    width: int
    weights: Array | None = None


def piece_edges(body: bytes, place: Place, as_text: bool) -> PieceEdges | None:
    """None: there are ids that are no whole numbers, so that all ids of the file have to be read as text."""
    found = _table(body, place, as_text)
    found = _plain(body, place) if found is None and not as_text else found
    return _careful(body, place, as_text) if found is None else found


def line_end(data: bytes, offset: int) -> int:
    """Where the line at `offset` ends, its LF included."""
    end = data.find(b"\n", offset)
    return len(data) if end < 0 else end + 1


def _plain(body: bytes, place: Place) -> PieceEdges | None:
    if body.translate(None, _PLAIN) or _has_empty_fields(body):
        return None
    text = body.translate(_BLANKS)
    characters = np.frombuffer(b" " + text + b" ", dtype=np.uint8)
    edges = np.diff((characters > 32).view(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not len(starts):
        return _nothing(place.width, place.weight is not None)
    newlines = np.flatnonzero(characters[1:] == 10)
    lines, counts = np.unique(np.searchsorted(newlines, starts), return_counts=True)
    width = place.width or int(counts[0])
    if width <= place.last or (counts != width).any() or int((ends - starts).max()) > _SAFE_DIGITS:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = np.fromstring(text.decode("ascii"), dtype=np.int64, sep=" ").reshape(-1, width)
    source, target = place.columns
    weights = None if place.weight is None else values[:, place.weight].astype(np.float64)
    return PieceEdges(values[:, source].copy(), values[:, target].copy(), lines + place.first_line, width, weights)


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


def _table(body: bytes, place: Place, as_text: bool) -> PieceEdges | None:
    separator = _only_separator(body)
    if separator is None:
        return None
    width = body[: line_end(body, 0)].count(separator) + 1
    if width <= place.last or place.width not in (None, width):
        return None
    names = [str(column) for column in range(width)]
    wanted = [names[column] for column in place.columns]
    kind = pyarrow.large_string() if as_text else pyarrow.int64()
    numbers = [] if place.weight is None else [names[place.weight]]
    try:
        table = pyarrow.csv.read_csv(
            pyarrow.BufferReader(body),
            pyarrow.csv.ReadOptions(column_names=names, use_threads=False, block_size=_TABLE_BYTES),
            pyarrow.csv.ParseOptions(delimiter=separator.decode(), quote_char=False, ignore_empty_lines=False),
            pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, kind) | dict.fromkeys(numbers, pyarrow.float64()),
                include_columns=wanted + numbers,
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except pyarrow.ArrowException:
        return None
    num_lines = body.count(b"\n") + (not body.endswith(b"\n"))
    if as_text and any(longest(table.column(name)) > LONGEST_TEXT for name in wanted):
        return None
    sources, targets = (table.column(name).to_numpy() for name in wanted)
    if as_text:
        sources, targets = sources.astype(np.str_), targets.astype(np.str_)
    if table.num_rows != num_lines or (as_text and any((end == "").any() for end in (sources, targets))):
        return None
    weights = table.column(numbers[0]).to_numpy() if numbers else None
    return PieceEdges(sources, targets, np.arange(place.first_line, place.first_line + num_lines), width, weights)


def _only_separator(body: bytes) -> bytes | None:
    """The one separator of a piece that needs no care; None when there is anything else to think of."""
    first = body[: line_end(body, 0)]
    separator = next((mark for mark in (b",", b"\t", b" ") if mark in first), None)
    if separator is None or body.startswith((b"\n", *COMMENTS)):
        return None
    if body[:1] == b" " or body[-1:] == b" ":
        return None
    if not body.translate(None, _NUMBERS + separator):
        return None if separator == b" " and _has_gaps(body) else separator
    others = {b",": b"\t", b"\t": b",", b" ": b",\t"}[separator]
    odd = (b'"', b"\x0b", b"\x0c", b"0x", b"0X", b"\n\n", b"\n ", b" \n", *(b"\n" + mark for mark in COMMENTS))
    around = (b"  ",) if separator == b" " else (separator + b" ", b" " + separator)
    if any(mark in body for mark in (*odd, *around)) or len(body) != len(body.translate(None, others)):
        return None
    return separator


def _has_gaps(body: bytes) -> bool:
    """Two blanks or line ends in a row."""
    blank = np.frombuffer(body, np.uint8) <= 32
    return bool((blank[1:] & blank[:-1]).any())


def _careful(body: bytes, place: Place, as_text: bool) -> PieceEdges | None:
    width, parts = place.width, []
    for first_line, part in _parts(body, place.first_line):
        found = _by_line(part, place._replace(first_line=first_line, width=width), as_text)
        if found is None:
            return None
        if len(found.lines):
            width = found.width
            parts.append(found)
    if not parts:
        return _nothing(width, place.weight is not None)
    return join_pieces(parts, width or 2)


def joined_pieces(
    pieces: Iterable[PieceEdges | None], width: int | None, is_weighted: bool, as_text: bool
) -> PieceEdges | None:
    """All of a file as one; None where one of the pieces is. `width`: of a file without edges."""
    if as_text:  # the longest text decides how wide a column is
        parts = [piece for piece in pieces if piece is not None]
        return join_pieces(parts, parts[-1].width) if parts else _nothing(width, is_weighted)
    columns = [GrowingColumn(np.int64) for _ in range(3)] + [GrowingColumn(np.float64)] * is_weighted
    for piece in pieces:
        if piece is None:
            return None
        given = [piece.sources, piece.targets, piece.lines, *([] if piece.weights is None else [piece.weights])]
        for column, values in zip(columns, given, strict=True):
            column.add(values)
        width = piece.width
    sources, targets, lines, *weights = (column.taken() for column in columns)
    return PieceEdges(sources, targets, lines, width or 2, weights[0] if weights else None)


def join_pieces(parts: Sequence[PieceEdges], width: int) -> PieceEdges:
    sources, targets, lines = (np.concatenate([part[column] for part in parts]) for column in range(3))
    weights = [part.weights for part in parts if part.weights is not None]
    return PieceEdges(sources, targets, lines, width, np.concatenate(weights) if weights else None)


def _nothing(width: int | None, is_weighted: bool) -> PieceEdges:
    empty = np.zeros(0, dtype=np.int64)
    return PieceEdges(empty, empty, empty, width or 2, np.zeros(0) if is_weighted else None)


def _parts(body: bytes, first_line: int) -> Iterator[tuple[int, bytes]]:
    start = 0
    while start < len(body):
        end = line_end(body, min(start + _CAREFUL_BYTES, len(body)))
        yield first_line, body[start:end]
        first_line += body.count(b"\n", start, end)
        start = end


def _by_line(body: bytes, place: Place, as_text: bool) -> PieceEdges | None:
    width, (source, target) = place.width, place.columns
    sources: list[str] = []
    targets: list[str] = []
    lines: list[int] = []
    weights: list[float] = []
    for line in lines_of(body, place.path, place.first_line):
        width = len(line.fields) if width is None else width
        if len(line.fields) < 2 or len(line.fields) != width:
            raise line_error(place.path, line.number, line.text, f"has {len(line.fields)} fields, not {max(width, 2)}")
        if not line.fields[source] or not line.fields[target]:
            raise line_error(place.path, line.number, line.text, "lacks a vertex id")
        sources.append(line.fields[source])
        targets.append(line.fields[target])
        lines.append(line.number)
        if place.weight is not None:
            weights.append(_weight(line, place))
    ids = (text_ids if as_text else parse_ids)(sources + targets, lines + lines, place.path)
    if ids.dtype.kind == "U" and not as_text:
        return None
    numbers = None if place.weight is None else np.array(weights, dtype=np.float64)
    return PieceEdges(ids[: len(lines)], ids[len(lines) :], np.array(lines, dtype=np.int64), width or 2, numbers)


def _weight(line: Line, place: Place) -> float:
    assert place.weight is not None
    field = line.fields[place.weight] if place.weight < len(line.fields) else ""
    if not is_number(field):
        raise line_error(place.path, line.number, line.text, f"has the weight {field!r}, which is no number")
    return float(field)

"""Features out of text or `.npy`: one row per vertex, with or without an id column.

A header may name the id column (`id`, `node_id`, ...). Empty cells are missing values: NaN. What does not parse is
refused with its line.
"""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.csv

from graph_server.ingest.archives import load_npy
from graph_server.ingest.ids import ID_HEADERS, parse_ids
from graph_server.ingest.raw_graph import Array, damaged
from graph_server.ingest.text import (
    MISSING,
    Line,
    find_column,
    header_note,
    is_comment_or_blank,
    is_number,
    line_error,
    lines_of,
    number_or_missing,
    read_text_bytes,
)


@dataclass(frozen=True)
class FeatureTable:
    """values [N, F]; ids [N] or None when rows count from 0; lines [N] where each row stands."""

    values: Array
    ids: Array | None
    lines: Array
    notes: tuple[str, ...] = ()


def read_features(path: Path) -> FeatureTable:
    """float64 [N, F] from text; an `.npy` keeps its dtype."""
    if ".npy" in path.suffixes:
        values = load_npy(path)
        if values.ndim not in (1, 2):
            raise damaged(path, f"shape {values.shape}; needed: (vertices, features)")
        return FeatureTable(values if values.ndim == 2 else values[:, None], None, np.arange(len(values)))
    data = read_text_bytes(path)
    header = _feature_header(data, path)
    id_column = None if header is None else find_column(header, ID_HEADERS)
    table = _fast_features(data, path, header, id_column)
    return _slow_features(data, path, header, id_column) if table is None else table


def _feature_header(data: bytes, path: Path) -> Line | None:
    first = next(lines_of(data, path), None)
    if first is None:
        return None
    words = [field for field in first.fields if field.lower() not in MISSING]
    named = find_column(first, ID_HEADERS) is not None
    return first if named or (words and not any(is_number(field) for field in words)) else None


def _fast_features(data: bytes, path: Path, header: Line | None, id_column: int | None) -> FeatureTable | None:
    """Arrow's parser; None when it stumbles, so that the slow reader can name the line or cope."""
    lines = data.splitlines()
    start = next((index for index, line in enumerate(lines) if not is_comment_or_blank(line)), len(lines))
    rows = lines[start + (header is not None) :]
    numbers = np.arange(start + 1 + (header is not None), len(lines) + 1)
    kept = np.array([not is_comment_or_blank(line) for line in rows], dtype=bool)
    rows = [row for row, keep in zip(rows, kept, strict=True) if keep]
    if not rows or b'"' in data:
        return None
    separator = next((mark for mark in ",\t" if mark.encode() in rows[0]), " ")
    width = rows[0].count(separator.encode()) + 1
    if header is not None and len(header.fields) != width:
        return None
    try:
        table = _arrow_table(rows, separator, width, id_column)
    except pyarrow.ArrowInvalid:
        return None
    others = [column for index, column in enumerate(table.itercolumns()) if index != id_column]
    values = np.empty((len(rows), len(others)))
    for index, column in enumerate(others):
        values[:, index] = column.to_numpy()
    ids = None
    if id_column is not None:
        tokens = [token.strip() for token in table.column(id_column).to_pylist()]
        ids = parse_ids(tokens, numbers[kept].tolist(), path)
    return FeatureTable(values, ids, numbers[kept], header_note(path, header))


def _arrow_table(rows: list[bytes], separator: str, width: int, id_column: int | None) -> pyarrow.Table:
    names = [str(index) for index in range(width)]
    types = {name: pyarrow.string() if int(name) == id_column else pyarrow.float64() for name in names}
    longest = max(len(row) for row in rows)
    return pyarrow.csv.read_csv(
        io.BytesIO(b"\n".join(rows) + b"\n"),
        read_options=pyarrow.csv.ReadOptions(column_names=names, block_size=max(1 << 22, 4 * longest)),
        parse_options=pyarrow.csv.ParseOptions(delimiter=separator, quote_char=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types, null_values=["", "nan", "NaN", "NA", "N/A", "null", "None"]
        ),
    )


def _slow_features(data: bytes, path: Path, header: Line | None, id_column: int | None) -> FeatureTable:
    width = None if header is None else len(header.fields)
    rows, tokens, numbers = [], [], []
    for line in lines_of(data, path):
        if header is not None and line.number == header.number:
            continue
        width = width or len(line.fields)
        if len(line.fields) != width:
            raise line_error(path, line.number, line.text, f"has {len(line.fields)} fields, not {width}")
        rows.append(
            [number_or_missing(field, line, path) for index, field in enumerate(line.fields) if index != id_column]
        )
        numbers.append(line.number)
        if id_column is not None:
            tokens.append(line.fields[id_column])
    ids = None if id_column is None else parse_ids(tokens, numbers, path)
    values = np.array(rows, dtype=np.float64).reshape(len(rows), len(rows[0]) if rows else 0)
    return FeatureTable(values, ids, np.array(numbers, dtype=np.int64), header_note(path, header))

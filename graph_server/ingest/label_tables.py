"""Labels and splits out of text or `.npy`: one row per vertex, with or without an id column.

A header may name the id column (`id`, `node_id`, ...), the label column and a split column. Empty cells are
unlabelled. What does not parse is refused with its line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graph_server.ingest.archives import load_npy
from graph_server.ingest.ids import ID_HEADERS, exact_ids, parse_ids, text_ids
from graph_server.ingest.raw_graph import MASK_NAMES, Array
from graph_server.ingest.text import (
    MISSING,
    Line,
    find_column,
    header_note,
    is_number,
    line_error,
    lines_of,
    number_or_missing,
    read_text_bytes,
)

LABEL_HEADERS = frozenset({"label", "labels", "y", "class", "target"})
SPLIT_HEADERS = frozenset({"split", "mask", "set"})
SPLIT_WORDS = {
    "train": "train", "training": "train",
    "valid": "valid", "val": "valid", "validation": "valid",
    "test": "test", "testing": "test",
}  # fmt: skip


@dataclass(frozen=True)
class LabelTable:
    """values [n] or [n, k]; split [n] of "train", "valid", "test", "" or None."""

    values: Array
    ids: Array | None
    lines: Array
    split: Array | None
    notes: tuple[str, ...] = ()


def read_labels(path: Path, as_text: bool = False) -> LabelTable:
    """One label a line, or a matrix; see the module's docstring for headers. `as_text`: ids are kept as written."""
    if ".npy" in path.suffixes:
        values = load_npy(path)
        return LabelTable(values, None, np.arange(len(values)) if values.ndim else np.zeros(0, np.int64), None)
    lines = list(lines_of(read_text_bytes(path), path))
    header = _label_header(lines)
    rows = lines[1:] if header is not None else lines
    width = len(lines[0].fields) if lines else 0
    for line in rows:
        if len(line.fields) != width:
            raise line_error(path, line.number, line.text, f"has {len(line.fields)} fields, not {width}")
    id_column, split_column = (
        None if header is None else find_column(header, names) for names in (ID_HEADERS, SPLIT_HEADERS)
    )
    numbers = [line.number for line in rows]
    parse = text_ids if as_text else parse_ids
    columns = _label_columns(header, width, taken=(id_column, split_column))
    return LabelTable(
        values=_label_values([[line.fields[column] for column in columns] for line in rows], rows, path),
        ids=None if id_column is None else parse([line.fields[id_column] for line in rows], numbers, path),
        lines=np.array(numbers, dtype=np.int64),
        split=None if split_column is None else np.array([_split_word(line, split_column, path) for line in rows]),
        notes=header_note(path, header),
    )


def _label_header(lines: Sequence[Line]) -> Line | None:
    """Known names, or words over numbers; a first line of text labels is no header."""
    if not lines:
        return None
    known = ID_HEADERS | LABEL_HEADERS | SPLIT_HEADERS
    if any(field.lower() in known for field in lines[0].fields):
        return lines[0]
    words = not any(is_number(field) or field.lower() in MISSING for field in lines[0].fields)
    numbers = len(lines) > 1 and all(
        is_number(field) or field.lower() in MISSING for line in lines[1:] for field in line.fields
    )
    return lines[0] if words and numbers else None


def _label_columns(header: Line | None, width: int, taken: tuple[int | None, int | None]) -> list[int]:
    named = None if header is None else find_column(header, LABEL_HEADERS)
    return [named] if named is not None else [index for index in range(width) if index not in taken]


def _label_values(cells: list[list[str]], rows: Sequence[Line], path: Path) -> Array:
    """[n] int64, float64 or str; [n, k] float64 for a matrix."""
    if cells and len(cells[0]) != 1:
        table = [[number_or_missing(cell, line, path) for cell in row] for row, line in zip(cells, rows, strict=True)]
        return np.array(table, dtype=np.float64)
    tokens = ["" if cell.lower() in MISSING else cell for row in cells for cell in row]
    if not all(is_number(token) for token in tokens if token):
        return np.array(tokens, dtype=np.str_)
    if all(token.lstrip("+-").isdigit() and len(token) <= 18 for token in tokens):
        return np.array([int(token) for token in tokens], dtype=np.int64)
    return np.array([float(token) if token else np.nan for token in tokens], dtype=np.float64)


def _split_word(line: Line, column: int, path: Path) -> str:
    word = line.fields[column].lower()
    if word in MISSING:
        return ""
    if word not in SPLIT_WORDS:
        raise line_error(path, line.number, line.fields[column], f"is no split; known: {', '.join(MASK_NAMES)}")
    return SPLIT_WORDS[word]


def read_id_list(path: Path, as_text: bool = False) -> tuple[Array, Array]:
    """ids [n] and their lines [n]: one id a line, a header allowed; or an array of ids."""
    if ".npy" in path.suffixes:
        ids = exact_ids(load_npy(path).reshape(-1), path)
        return ids, np.arange(len(ids))
    lines = list(lines_of(read_text_bytes(path), path))
    known = ID_HEADERS | set(SPLIT_WORDS) | {"index"}
    if lines and lines[0].fields[0].lower() in known:
        lines = lines[1:]
    for line in lines:
        if len(line.fields) != 1:
            raise line_error(path, line.number, line.text, f"has {len(line.fields)} fields; needed: one vertex id")
    numbers = [line.number for line in lines]
    parse = text_ids if as_text else parse_ids
    return parse([line.fields[0] for line in lines], numbers, path), np.array(numbers, dtype=np.int64)

"""Columns of an Arrow table as arrays: ids, numbers, texts, lists, each checked; only texts become Python objects."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.types

from common.errors import DatasetError
from graph_server.ingest.ids import LONGEST_TEXT, exact_ids, longest
from graph_server.ingest.number_lists import split_numbers
from graph_server.ingest.raw_graph import Array, damaged

SPLITTABLE = frozenset({"feat", "feats", "feature", "features", "x", "nodefeat", "nodefeatures"})
"""Names, as `plain_name` spells them, under which a text is a list of numbers."""


@contextlib.contextmanager
def damage_of(path: Path) -> Iterator[None]:
    """What Arrow raises becomes a DatasetError; ValueError is for names that are no UTF-8."""
    try:
        yield
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise damaged(path, error) from error


def plain_name(name: str) -> str:
    """How a column's name is compared: `~sourceNodeId`, `source_node_id` and `sourcenodeid` are one."""
    return name.lower().replace("_", "").lstrip("~:")


def column_names(table: pyarrow.Table | pyarrow.Schema, path: Path) -> list[str]:
    """Raises DatasetError for names that are no text, or that two columns bear."""
    try:
        names: list[str] = table.names if isinstance(table, pyarrow.Schema) else table.column_names
    except UnicodeDecodeError as error:
        raise damaged(path, f"the name of a column is not UTF-8: {error}") from error
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise damaged(path, f"several columns are named {', '.join(repeated[:5])}")
    return names


def is_text(column: pyarrow.ChunkedArray) -> bool:
    kind = column.type
    return pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_string_view(kind)


def is_number(column: pyarrow.ChunkedArray) -> bool:
    kind = column.type
    return pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_boolean(kind)


def is_list(column: pyarrow.ChunkedArray) -> bool:
    kind = column.type
    return pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind) or pyarrow.types.is_fixed_size_list(kind)


def decoded(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """Categories become what they stand for."""
    if pyarrow.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def id_values(column: pyarrow.ChunkedArray, name: str, path: Path) -> Array:
    """int64 or str [rows]; an id that is missing or not exact is named with its row."""
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DatasetError(
            what=f"{path}: row {row}: {name} is empty ({column.null_count} of {len(column)} rows)",
            why="every vertex and both ends of every edge need an id",
            fix="fill them in, or remove these rows",
        )
    if is_text(column):
        return text_values(column, f"{path}: {name}")
    if not is_number(column):
        raise damaged(path, f"{name} has type {column.type}; ids are whole numbers or texts")
    return exact_ids(column.to_numpy(), path)


def text_values(column: pyarrow.ChunkedArray, where: str) -> Array:
    """str [rows]; a missing text is "". Raises DatasetError for a text that is too long for an id or a label."""
    if (most := longest(column)) > LONGEST_TEXT:
        raise DatasetError(
            what=f"{where} holds a text of {most:,} bytes",
            why=f"ids and labels have at most {LONGEST_TEXT:,}, for all of them take as much room as the longest",
            fix="shorten it, or see whether a line end or a separator is missing",
        )
    return np.asarray(column.fill_null("").to_numpy(), dtype=np.str_).reshape(len(column))


def number_values(column: pyarrow.ChunkedArray) -> Array:
    """[rows]; float64 with NaN where a value is missing."""
    if pyarrow.types.is_boolean(column.type):
        column = column.cast(pyarrow.int8())
    return column.cast(pyarrow.float64()).to_numpy() if column.null_count else column.to_numpy()


def matrix_values(column: pyarrow.ChunkedArray, name: str, path: Path, lines: Array) -> Array:
    """[rows, width] out of lists, or of texts that are lists; all of one length."""
    if is_text(column):
        texts = column.fill_null("").to_pylist()
        values, lengths = split_numbers(texts, lines.tolist(), path)
    else:
        lists = column.combine_chunks()
        flat = pyarrow.compute.list_flatten(lists)
        if not is_number(flat):
            raise damaged(path, f"{name} has type {column.type}; needed: lists of numbers")
        lengths = np.nan_to_num(np.asarray(pyarrow.compute.list_value_length(lists).cast(pyarrow.float64())))
        values = number_values(pyarrow.chunked_array([flat]))
    if len(lengths) and (lengths != lengths[0]).any():
        row = int(np.flatnonzero(lengths != lengths[0])[0])
        raise DatasetError(
            what=f"{path}: row {row}: {name} holds {int(lengths[row])} numbers, the rows above {int(lengths[0])}",
            why="a model reads the same features of every vertex",
            fix="fill the list up, or correct it",
        )
    return values.reshape(len(column), int(lengths[0]) if len(lengths) else 0)

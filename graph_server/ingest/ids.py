"""Vertex ids as users write them: integers, whole floats such as 12.0, or any text.

An id is never rounded: a float that is not a whole number, or is too large to be one exactly, is refused.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute

from common.errors import DatasetError
from graph_server.ingest.raw_graph import Array, damaged
from graph_server.ingest.text import line_error

ID_HEADERS = frozenset({"id", "node_id", "nodeid", "node", "vertex", "vertex_id", "nid"})

LONGEST_TEXT = 1000
"""Characters of an id or a label; all of a table take as much room as the longest."""

_MARKS_PER_ID = 8
"""Marks are bytes: no more of them than sorting the ids would copy."""
_WHOLE = re.compile(r"[+-]?\d+(\.0*)?", re.ASCII)
_RENAME = "such an id is usually an overflow: remove the line, or rename the vertex everywhere"


def parse_ids(tokens: Sequence[str], lines: Sequence[int], path: Path) -> Array:
    """int64 when every token is a whole number, negative ones too; else str, each exactly as written.

    tokens, lines   [n] each: an id and the line it stands on
    """
    if not all(_WHOLE.fullmatch(token) for token in tokens):
        return text_ids(tokens, lines, path)
    numbers = np.empty(len(tokens), dtype=np.int64)
    for index, token in enumerate(tokens):
        digits = token.partition(".")[0]
        number = int(digits) if len(digits) < 40 else 2**63
        if not -(2**63) <= number < 2**63:
            raise line_error(path, lines[index], token, "is beyond 64 bits", _RENAME)
        numbers[index] = number
    return numbers


def longest(column: pyarrow.ChunkedArray) -> int:
    """Bytes of the longest text; 0 where there is none."""
    return pyarrow.compute.max(pyarrow.compute.binary_length(column)).as_py() or 0


def text_ids(tokens: Sequence[str], lines: Sequence[int], path: Path) -> Array:
    """str, each exactly as written: "007" stays "007"."""
    for token, line in zip(tokens, lines, strict=True):
        if not token:
            raise line_error(path, line, "", "is an empty id")
        if len(token) > LONGEST_TEXT:
            raise line_error(path, line, token, f"is an id of {len(token):,} characters; at most are {LONGEST_TEXT:,}")
    return np.array(tokens, dtype=np.str_)


def exact_ids(values: Array, path: Path) -> Array:
    """int64 or str out of an array file; a float must be whole and small enough to be exact.

    Raises DatasetError naming the first row that is not.
    """
    if values.dtype.kind == "U":
        return values
    if values.dtype.kind not in "iuf":
        raise damaged(path, f"ids have dtype {values.dtype}; needed: integers or text")
    if values.dtype.kind == "f":
        limit = 2.0 ** (np.finfo(values.dtype).nmant + 1)
        with np.errstate(invalid="ignore"):
            bad = ~((np.abs(values) < limit) & (values == np.floor(values)))
    else:
        bad = values > np.uint64(2**63 - 1) if values.dtype.kind == "u" else np.zeros(1, dtype=bool)
    if bad.any():
        row = int(np.flatnonzero(bad.reshape(-1))[0])
        raise DatasetError(
            what=f"{path}: {values.reshape(-1)[row]} at position {row} is no exact vertex id ({values.dtype})",
            why="ids are whole numbers of 64 bits; a float beyond its exact range has already been rounded",
            fix="save the ids as int64",
        )
    return values.astype(np.int64, copy=False)


def distinct_ids(parts: Sequence[Array]) -> Array:
    """Every id of int64 or str arrays once, sorted. Whole numbers that lie close together are marked, not sorted."""
    given = [part for part in parts if len(part)]
    if given and all(part.dtype == np.int64 for part in given):
        low = min(0, *(int(part.min()) for part in given))
        room = max(int(part.max()) for part in given) - low + 1
        if room <= _MARKS_PER_ID * sum(map(len, given)):
            marks = np.zeros(room, np.bool_)
            for part in given:
                marks[part - low if low else part] = True
            return np.flatnonzero(marks) + low
    return np.unique(np.concatenate([np.unique(part) for part in parts]))


def own_ids(names: Array | None, num_nodes: int, what: str, *, negative: bool) -> tuple[Array, tuple[str, ...]]:
    """Names serve as ids when there is one per vertex and no two are equal; else row numbers do, and a note says so.

    negative: whether negative numbers are taken, too
    """
    rows = np.arange(num_nodes, dtype=np.int64)
    if names is None:
        return rows, ()
    names = names.reshape(-1)
    fits = len(names) == num_nodes and names.dtype.kind in "iuU" and len(np.unique(names)) == num_nodes
    if not fits or (names.dtype.kind == "u" and num_nodes and names.max() >= 2**63):
        return rows, (f"{what} are not one per vertex and all different: row numbers serve as ids",)
    if names.dtype.kind == "i" and num_nodes and names.min() < 0 and not negative:
        return rows, (f"{what} are negative: row numbers serve as ids; dataset.negative_ids: true takes them",)
    return (names if names.dtype.kind == "U" else names.astype(np.int64)), ()

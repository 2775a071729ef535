"""Vertex ids as users write them: integers, whole floats such as 12.0, or any text.

An id is never rounded: a float that is not a whole number, or is too large to be one exactly, is refused.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.raw_graph import Array, damaged
from graph_server.ingest.text import line_error

ID_HEADERS = frozenset({"id", "node_id", "nodeid", "node", "vertex", "vertex_id", "nid"})

_WHOLE = re.compile(r"[+-]?\d+(\.0*)?", re.ASCII)
_RENAME = "such an id is usually an overflow or a mark for 'missing': remove the line, or rename the vertex everywhere"


def parse_ids(tokens: Sequence[str], lines: Sequence[int], path: Path) -> Array:
    """int64 when every token is a whole number, else str, each exactly as written.

    tokens, lines   [n] each: an id and the line it stands on
    """
    if not all(_WHOLE.fullmatch(token) for token in tokens):
        return text_ids(tokens, lines, path)
    numbers = np.empty(len(tokens), dtype=np.int64)
    for index, token in enumerate(tokens):
        digits = token.partition(".")[0]
        number = int(digits) if len(digits) < 40 else -1
        if not 0 <= number < 2**63:
            raise line_error(path, lines[index], token, "is negative or beyond 64 bits", _RENAME)
        numbers[index] = number
    return numbers


def text_ids(tokens: Sequence[str], lines: Sequence[int], path: Path) -> Array:
    """str, each exactly as written: "007" stays "007"."""
    for token, line in zip(tokens, lines, strict=True):
        if not token:
            raise line_error(path, line, "", "is an empty id")
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
            bad = ~((values >= 0) & (values < limit) & (values == np.floor(values)))
    elif values.dtype.kind == "u":
        bad = values > np.uint64(2**63 - 1)
    else:
        bad = values < 0
    if bad.any():
        row = int(np.flatnonzero(bad.reshape(-1))[0])
        raise DatasetError(
            what=f"{path}: {values.reshape(-1)[row]} at position {row} is no exact vertex id ({values.dtype})",
            why="ids are whole numbers from 0; a float beyond its exact range has already been rounded",
            fix="save the ids as int64",
        )
    return values.astype(np.int64, copy=False)


def own_ids(names: Array | None, num_nodes: int, what: str) -> tuple[Array, tuple[str, ...]]:
    """Names serve as ids when there is one per vertex and no two are equal; else row numbers do, and a note says so."""
    rows = np.arange(num_nodes, dtype=np.int64)
    if names is None:
        return rows, ()
    names = names.reshape(-1)
    fits = len(names) == num_nodes and names.dtype.kind in "iuU" and len(np.unique(names)) == num_nodes
    if not fits or (names.dtype.kind != "U" and num_nodes and (names.min() < 0 or names.max() >= 2**63)):
        return rows, (f"{what} are not one per vertex and all different: row numbers serve as ids",)
    return (names if names.dtype.kind == "U" else names.astype(np.int64)), ()

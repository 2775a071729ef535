"""MatrixMarket coordinate files: ids count from 1, and an entry (i, j) is the edge i -> j.

    %%MatrixMarket matrix coordinate real|integer|complex|pattern general|symmetric|skew-symmetric|hermitian
    % comments
    rows columns entries
    1 2 0.5

Symmetric files store one triangle: their edges go both ways. Of a general file the direction is asked. Real values are
weights where `edge_weight: value` says so, else reported and not used. Dense (`array`) and non-square matrices are
refused.

Source: Boisvert, Pozo, Remington 1996 (NISTIR 5935).
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.edge_text import EdgeTable, read_edges_below
from graph_server.ingest.edge_weights import checked_weights, no_such_weights
from graph_server.ingest.memory import check_num_nodes
from graph_server.ingest.raw_graph import Array, RawGraph, ReaderDefaults
from graph_server.ingest.text import Line, is_comment_or_blank, line_error, read_head

LOOKS_FOR = "MatrixMarket: one file that begins with %%MatrixMarket"
DEFAULTS: ReaderDefaults = {}

MARK = b"%%MatrixMarket"
FIELDS = {"real": 3, "integer": 3, "complex": 4, "pattern": 2}
"""How many columns an entry has."""
VALUE = "value"
"""The name of the third, as `edge_weight` calls it."""
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_HEAD_BYTES = 1 << 20


class _Header(NamedTuple):
    num_nodes: int
    num_entries: int
    width: int
    symmetry: str
    sizes: Line


def detect(path: Path) -> bool:
    """By its first word."""
    try:
        return path.is_file() and read_head(path, 64).startswith(MARK)
    except (DatasetError, OSError):
        return False


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """There are no features and no labels in such a file; of `options` only `edge_weight` changes something."""
    header = _header(path)
    weight = None if options.edge_weight is None else _weight_column(options.edge_weight, header, path)
    entries = read_edges_below(path, header.sizes.number, header.width, weight)
    sources, targets = _rows(entries, header)
    return RawGraph(
        format="matrix_market",
        node_ids=np.arange(1, header.num_nodes + 1, dtype=np.int64),
        sources=sources,
        targets=targets,
        features=None,
        labels=None,
        undirected=None if header.symmetry == "general" else True,
        defaults=DEFAULTS,
        notes=(f"{path.name}: entries have values: reported and not used",) * (header.width > 2 and weight is None),
        why_no_features=f"{path.name} is a matrix alone: it has no features and no labels",
        why_no_labels=f"{path.name} is a matrix alone: it has no features and no labels",
        weights=None
        if entries.weights is None
        else checked_weights(entries.weights, path, lines=entries.lines, unit="line"),
    )


def _weight_column(wanted: str, header: _Header, path: Path) -> int:
    if wanted != VALUE or header.width != FIELDS["real"]:
        raise no_such_weights(wanted, path, (VALUE,) * (header.width == FIELDS["real"]))
    if header.symmetry == "skew-symmetric":
        raise DatasetError(
            what=f"{path} is skew-symmetric, and dataset.edge_weight: {wanted}",
            why="each edge would weigh the opposite of its reverse, which is not in the file",
            fix="write it as a general matrix, with both directions",
        )
    return 2


def _header(path: Path) -> _Header:
    lines = read_head(path, _HEAD_BYTES).splitlines()
    width, symmetry = _kind(path, lines[0].decode("utf-8", "replace"))
    number = next((number for number, line in enumerate(lines[1:], 2) if not is_comment_or_blank(line)), 0)
    if not number:
        raise line_error(path, len(lines), "", "ends before the line of sizes")
    text = lines[number - 1].decode("utf-8", "replace").strip()
    fields = text.split()
    if len(fields) != 3 or not all(re.fullmatch(r"\d{1,18}", field) for field in fields):
        raise line_error(path, number, text, "is not the line of sizes; needed: rows columns entries")
    rows, columns, num_entries = (int(field) for field in fields)
    if rows != columns or not rows:
        raise DatasetError(
            what=f"{path}:{number}: the matrix has {rows} rows and {columns} columns",
            why="an adjacency has one row and one column for each vertex; this one may join two kinds of vertices",
            fix="give a square matrix",
        )
    check_num_nodes(rows, f"{path}:{number}")
    return _Header(rows, num_entries, width, symmetry, Line(number, tuple(fields), text))


def _kind(path: Path, first: str) -> tuple[int, str]:
    words = first.lower().split()
    known = ({"matrix"}, {"coordinate", "array"}, set(FIELDS), set(SYMMETRIES))
    unknown = [word for word, words_known in zip(words[1:], known, strict=False) if word not in words_known]
    if len(words) != 5 or unknown:
        reason = f"has the unknown word {unknown[0]!r}" if unknown else f"has {len(words)} words, not 5"
        fix = f"needed: matrix coordinate, {' | '.join(FIELDS)}, {' | '.join(SYMMETRIES)}"
        raise line_error(path, 1, first, reason, fix)
    if words[2] == "array":
        raise DatasetError(
            what=f"{path} is a dense matrix ('array')",
            why="a graph is a list of edges; of a dense matrix it would be unclear which zeros are none",
            fix="save it in coordinate form: scipy.io.mmwrite(file, scipy.sparse.coo_matrix(matrix))",
        )
    if words[4] == "hermitian" and words[3] != "complex":
        raise line_error(path, 1, first, f"is hermitian and {words[3]}", "write symmetric; only complex is hermitian")
    return FIELDS[words[3]], words[4]


def _rows(entries: EdgeTable, header: _Header) -> tuple[Array, Array]:
    if len(entries.sources) != header.num_entries:
        raise DatasetError(
            what=f"{entries.path} holds {len(entries.sources)} entries, and line {header.sizes.number} announces "
            f"{header.num_entries}",
            why="the file is cut off, or its line of sizes is wrong",
            fix="fetch it again, or correct the line",
        )
    ends = (entries.sources, entries.targets)
    if any(end.dtype.kind == "U" for end in ends):
        odd = next(place for place, pair in enumerate(zip(*ends, strict=True)) if not all(map(str.isdecimal, pair)))
        raise _outside(entries, odd, header)
    for end in ends:
        outside = (end < 1) | (end > header.num_nodes)
        if outside.any():
            raise _outside(entries, int(np.flatnonzero(outside)[0]), header)
    return entries.sources - 1, entries.targets - 1


def example(folder: Path) -> Path:
    """Writes a small matrix into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    file = folder / "ring.mtx"
    text = "%%MatrixMarket matrix coordinate pattern general\n4 4 4\n1 2\n2 3\n3 4\n4 1\n"
    file.write_text(text, encoding="utf-8")
    return file


def _outside(entries: EdgeTable, place: int, header: _Header) -> DatasetError:
    entry = f"{entries.sources[place]} {entries.targets[place]}"
    reason = f"lies outside the matrix: rows and columns are 1 .. {header.num_nodes}"
    return line_error(entries.path, int(entries.lines[place]), entry, reason)

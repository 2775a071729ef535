"""A list of edges, alone or in a folder of plain files with features, labels and masks.

    edges.{csv,tsv,txt,npy}             two ids a line, or an array (2, E) or (E, 2); or a folder edges/ of part files;
                                        in text a third column may be weights, by its name or number in `edge_weight`
    features.{csv,tsv,txt,npy}          one row per vertex; a header may name an `id` column
    labels.{csv,tsv,txt,npy}            one row per vertex; a header may name `id`, `label` and `split` columns
    train, valid, test .{csv,txt}       one id a line;  or masks.npy [N, 3], columns train, valid, test

Files may be packed: .gz, .zst, .bz2, .lz4. Ids are whole numbers or text; without an id column rows count from 0.
Alone, a list of edges names its own vertices. Comments of SNAP and KONECT may say whether edges go both ways.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.archives import load_npy
from graph_server.ingest.edge_rows import weighted_edge_rows
from graph_server.ingest.edge_text import EdgeTable, edge_pieces, lines_of_head, read_edges
from graph_server.ingest.feature_tables import FeatureTable, read_features
from graph_server.ingest.label_tables import LabelTable, read_id_list, read_labels
from graph_server.ingest.lone_header import refuse_lone_header
from graph_server.ingest.masks import as_mask
from graph_server.ingest.named_vertices import named_vertices
from graph_server.ingest.node_index import NodeIndex, unique_index, unknown_ids
from graph_server.ingest.part_files import natural_order, part_files
from graph_server.ingest.raw_graph import MASK_NAMES, Array, RawGraph, ReaderDefaults, damaged
from graph_server.ingest.streams import PACKED_SUFFIXES, plain_suffix
from graph_server.ingest.text import read_head
from graph_server.ingest.vertex_rows import index_of_ends, label_rows, spread

LOOKS_FOR = "edge list: two ids a line, or a folder with edges.{csv,tsv,txt,npy}, features.{csv,npy}, labels.{csv,npy}"
DEFAULTS: ReaderDefaults = {}

SUFFIXES = (".csv", ".tsv", ".txt", ".npy")
_ALIASES: Mapping[str, tuple[str, ...]] = {"valid": ("valid", "val")}
_DESCRIPTIONS = ("meta.yaml", "metadata.yaml")
_PAIRS = {".cites": (".content",), ".content": (".cites",)}
"""Of formats that hold such files too: DGL's, and LINQS."""
_DIRECTIONS = (
    (re.compile(rb"^#\s*undirected graph", re.I | re.M), True),
    (re.compile(rb"^#\s*directed graph", re.I | re.M), False),
    (re.compile(rb"\A%\s*sym\b"), True),
    (re.compile(rb"\A%\s*asym\b"), False),
)
"""What SNAP and KONECT write above their edges."""


def detect(path: Path) -> bool:
    """A folder with edges; or one file whose first lines, or whose array, look like pairs of ids."""
    try:
        if path.is_dir():
            return bool(_edge_files(path)) and not any((path / name).is_file() for name in _DESCRIPTIONS)
        if any(path.with_suffix(other).is_file() for other in _PAIRS.get(path.suffix, ())):
            return False
        head = read_head(path)
        return head[:6] == b"\x93NUMPY" or _has_pairs(head, path)
    except (DatasetError, OSError):
        return False


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`options` says what to do with edges to unknown vertices, which column is weights, and which of 2-D masks to
    take."""
    files = _files(path)
    features = read_features(files["features"]) if "features" in files else None
    known = None if features is None else _index(features, files["features"], options.negative_ids)
    labels = read_labels(files["labels"], as_text=known is not None and known.is_text) if "labels" in files else None
    ids_are_text = labels is not None and labels.ids is not None and labels.ids.dtype.kind == "U"
    as_text = ids_are_text if known is None else known.is_text
    tables = _tables(_edge_files(path), as_text, options.edge_weight, alike=known is None)
    if known is None and labels is not None and not ids_are_text and tables[0].sources.dtype.kind == "U":
        labels = read_labels(files["labels"], as_text=True)
    index = _vertices(tables, labels, known, options.negative_ids)
    edges = weighted_edge_rows(tables, index, options.drop_unknown_edges)
    raw = _without_edges(path, (features, labels), index, options, _said_direction(tables[0].path))
    alone = known is None and (labels is None or labels.ids is None)
    notes = (*edges.notes, *(refuse_lone_header(tables, index) if alone else ()), *raw.notes)
    return replace(raw, sources=edges.sources, targets=edges.targets, weights=edges.weights, notes=notes)


def read_vertices(path: Path, options: DatasetSpec) -> tuple[RawGraph, NodeIndex, list[Path]]:
    """Of a folder with features: everything but its edges, and the files that hold these."""
    files, edges = _files(path), _edge_files(path)
    if "features" not in files or not edges:
        raise DatasetError(
            what=f"{path} cannot be read piece by piece",
            why=_lacks(path, "features") if edges else f"{path} has no file of edges",
            fix="add features, one row per vertex: without them the vertices are whatever the edges name",
        )
    features = read_features(files["features"])
    index = _index(features, files["features"], options.negative_ids)
    labels = read_labels(files["labels"], as_text=index.is_text) if "labels" in files else None
    return _without_edges(path, (features, labels), index, options, _said_direction(edges[0])), index, edges


def read_ends(path: Path, options: DatasetSpec, most_bytes: int) -> tuple[RawGraph, NodeIndex, list[Path]]:
    """The same; and of a list of edges alone its vertices, which are found piece by piece and may take `most_bytes`."""
    files, edges = _files(path), _edge_files(path)
    if not edges or set(files) - {"edges"}:
        return read_vertices(path, options)
    index = named_vertices(edges, negative=options.negative_ids, most_bytes=most_bytes)
    notes = refuse_lone_header((table for file in edges for table in edge_pieces(file, index.is_text)), index)
    raw = _without_edges(path, (None, None), index, options, _said_direction(edges[0]))
    return replace(raw, notes=(*notes, *raw.notes)), index, edges


def _without_edges(
    path: Path,
    tables: tuple[FeatureTable | None, LabelTable | None],
    index: NodeIndex,
    options: DatasetSpec,
    undirected: bool | None,
) -> RawGraph:
    files, (features, labels), nothing = _files(path), tables, np.zeros(0, dtype=np.int64)
    rows = None if labels is None else label_rows(labels, index, files["labels"])
    return RawGraph(
        format="edge_list",
        node_ids=index.node_ids,
        sources=nothing,
        targets=nothing,
        features=None if features is None else features.values,
        labels=None if labels is None or rows is None else spread(labels.values, rows, index.num_nodes),
        masks=_masks(files, index, labels, rows, options.split_index),
        undirected=undirected,
        defaults=DEFAULTS,
        notes=(*(features.notes if features else ()), *(labels.notes if labels else ())),
        why_no_features="" if features else _lacks(path, "features"),
        why_no_labels="" if labels else _lacks(path, "labels"),
    )


def _has_pairs(head: bytes, path: Path) -> bool:
    if (
        b"\0" in head
        or head[:2] in (b"PK", b"\xff\xfe", b"\xfe\xff")
        or head.startswith((b"%%MatrixMarket", b"{", b"[", b"<"))
    ):
        return False
    first = next(lines_of_head(head, path), None)
    return first is not None and len(first.fields) >= 2


def _candidates(folder: Path, stem: str) -> list[Path]:
    names = [f"{stem}{suffix}{packed}" for suffix in SUFFIXES for packed in ("", *PACKED_SUFFIXES)]
    present = {file.name for file in folder.iterdir()}
    return [folder / name for name in names if name in present and (folder / name).is_file()]


def _edge_files(path: Path) -> list[Path]:
    """The file, the edges file of a folder, the parts in its folder edges/, or the parts that are all it holds."""
    if not path.is_dir():
        return [path]
    if (path / "edges").is_dir():
        inner = part_files(path / "edges")
        return inner if all(plain_suffix(file) in SUFFIXES for file in inner) else []
    found = _candidates(path, "edges")
    parts = [] if found else sorted((file for file in path.iterdir() if file.is_file()), key=natural_order)
    are_parts = all(re.match(r"part[-_.]?\d", file.name) and plain_suffix(file) in SUFFIXES for file in parts)
    return found or (parts if are_parts else [])


def _files(path: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    if not path.is_dir():
        return found
    for stem in ("edges", "features", "labels", "masks", *MASK_NAMES):
        candidates = [file for name in _ALIASES.get(stem, (stem,)) for file in _candidates(path, name)]
        if len(candidates) > 1:
            raise DatasetError(
                what=f"{path} holds {' and '.join(file.name for file in candidates)}",
                why="both could be meant, and they may differ",
                fix="keep one of them",
            )
        if candidates:
            found[stem] = candidates[0]
    return found


def _lacks(path: Path, stem: str) -> str:
    if path.is_dir():
        return f"{path} has edges but no {stem}.csv and no {stem}.npy"
    return f"{path.name} is an edge list alone: it has no features and no labels"


def _tables(files: Sequence[Path], as_text: bool, weight: str | None, *, alike: bool) -> list[EdgeTable]:
    """alike: the ids of all files are of one kind, and one text among them makes all of them texts."""
    tables = [read_edges(file, as_text, weight) for file in files]
    if alike and len({table.sources.dtype.kind for table in tables if len(table.sources)}) > 1:
        tables = [read_edges(file, True, weight) for file in files]
    _refuse_size_line(tables[0])
    return tables


def _refuse_size_line(table: EdgeTable) -> None:
    """A MatrixMarket file without its first line begins with a line of sizes, which is no edge."""
    if plain_suffix(table.path) == ".npy" or len(table.sources) < 2 or table.sources.dtype.kind != "i":
        return
    first = next(lines_of_head(read_head(table.path), table.path), None)
    if first is None or len(first.fields) != 3 or first.number != table.lines[0]:
        return
    rest = max(int(table.sources[1:].max()), int(table.targets[1:].max()))
    if first.fields[2] == str(len(table.sources) - 1) and rest <= min(table.sources[0], table.targets[0]):
        raise DatasetError(
            what=f"{table.path}:{first.number}: {first.text!r} is followed by exactly {first.fields[2]} lines",
            why="it looks like the line of sizes of a MatrixMarket file, not like an edge",
            fix="write '%%MatrixMarket matrix coordinate real general' above it, or remove the line if it is no edge",
        )


def _said_direction(path: Path) -> bool | None:
    if plain_suffix(path) == ".npy":
        return None
    head = read_head(path)
    if head.startswith(b"% bip"):
        raise DatasetError(
            what=f"{path} joins two kinds of vertices (its first line says 'bip')",
            why="both kinds count from 1, so vertex 1 would be two different things",
            fix="give the second kind ids of its own, and remove that line",
        )
    return next((undirected for mark, undirected in _DIRECTIONS if mark.search(head)), None)


def _vertices(
    tables: Sequence[EdgeTable], labels: LabelTable | None, known: NodeIndex | None, negative: bool
) -> NodeIndex:
    """The rows of the features; else the rows of the labels; else whatever the edges and labels name."""
    if known is not None:
        return known
    if labels is not None and labels.ids is None:
        return NodeIndex(np.arange(len(labels.values) if labels.values.ndim else 0))
    index = index_of_ends(tables, labels, negative=negative)
    if not index.num_nodes:
        raise DatasetError(
            what=f"{tables[0].path} holds no edge",
            why="without features the vertices are those that edges name",
            fix="give at least one edge, or features with one row per vertex",
        )
    return index


def _index(features: FeatureTable, path: Path, negative: bool) -> NodeIndex:
    if features.ids is None:
        rows = np.arange(len(features.values), dtype=np.int64)
        return unique_index(rows, rows, path)
    return unique_index(features.ids, features.lines, path, negative=negative)


def _masks(
    files: Mapping[str, Path], index: NodeIndex, labels: LabelTable | None, rows: Array | None, split_index: int
) -> dict[str, Array] | None:
    lists = [name for name in MASK_NAMES if name in files]
    given = [*(files[name].name for name in lists), *([files["masks"].name] if "masks" in files else [])]
    column = None if labels is None else labels.split
    given += ["the split column of labels"] if column is not None else []
    if len(given) > max(1, len(lists)):
        raise DatasetError(
            what=f"masks are given more than once: {', '.join(given)}",
            why="they may differ",
            fix="keep one of them",
        )
    if "masks" in files:
        return _mask_array(files["masks"], index.num_nodes, split_index)
    if lists:
        return {name: _listed(files.get(name), index) for name in MASK_NAMES}
    if column is None:
        return None
    split = np.zeros(index.num_nodes, dtype="U5")
    split[rows] = column
    return {name: split == name for name in MASK_NAMES}


def _mask_array(path: Path, num_nodes: int, split_index: int) -> dict[str, Array]:
    if path.suffix != ".npy":
        raise damaged(path, "masks as text are lists: train.csv, valid.csv, test.csv")
    values = load_npy(path)
    if values.shape[:2] != (num_nodes, 3):
        raise damaged(path, f"shape {values.shape}; needed: ({num_nodes}, 3), columns train, valid, test")
    return {
        name: as_mask(values[:, column], num_nodes, split_index, where=f"{path}: {name}")
        for column, name in enumerate(MASK_NAMES)
    }


def _listed(path: Path | None, index: NodeIndex) -> Array:
    mask = np.zeros(index.num_nodes, dtype=bool)
    if path is not None:
        ids, lines = read_id_list(path, as_text=index.is_text)
        rows = index.rows(ids)
        if (rows < 0).any():
            raise unknown_ids(index, ids[rows < 0], lines[rows < 0], path, where="line")
        mask[rows] = True
    return mask


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    files = {
        "edges.csv": "source,target\n0,1\n1,2\n2,3\n3,0\n",
        "features.csv": "1,0\n0,1\n1,1\n2,0\n",
        "labels.csv": "0\n1\n0\n1\n",
        "train.txt": "0\n1\n",
        "valid.txt": "2\n",
        "test.txt": "3\n",
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder

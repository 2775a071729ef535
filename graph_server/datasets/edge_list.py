"""A folder of plain files: edges, features, labels and, if you like, masks.

    edges.{csv,tsv,txt,npy}[.gz]        two ids a line, or an array (2, E) or (E, 2)
    features.{csv,tsv,txt,npy}[.gz]     one row per vertex; a header may name an `id` column
    labels.{csv,tsv,txt,npy}[.gz]       one row per vertex; a header may name `id`, `label` and `split` columns
    train, valid, test .{csv,txt}       one id a line;  or masks.npy [N, 3], columns train, valid, test

Ids are whole numbers or text. Without an id column rows count from 0. The files do not say whether edges go both ways.
"""

import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.archives import load_npy
from graph_server.ingest.edge_text import EdgeTable, lines_of_head, read_edges
from graph_server.ingest.feature_tables import FeatureTable, read_features
from graph_server.ingest.label_tables import LabelTable, read_id_list, read_labels
from graph_server.ingest.masks import as_mask
from graph_server.ingest.node_index import NodeIndex, unique_index, unknown_ids
from graph_server.ingest.raw_graph import MASK_NAMES, Array, RawGraph, ReaderDefaults, damaged
from graph_server.ingest.text import read_head

LOOKS_FOR = "edge list: a folder with edges.{csv,tsv,txt,npy}, features.{csv,npy} and labels.{csv,npy}"
DEFAULTS: ReaderDefaults = {}

SUFFIXES = (".csv", ".tsv", ".txt", ".npy")
_ALIASES: Mapping[str, tuple[str, ...]] = {"valid": ("valid", "val")}


def detect(path: Path) -> bool:
    """A folder with an edges file; or one file whose first lines, or whose array, look like pairs of ids."""
    try:
        if path.is_dir():
            return bool(_candidates(path, "edges"))
        head = read_head(path)
        return head[:6] == b"\x93NUMPY" or _has_pairs(head, path)
    except (DatasetError, OSError, EOFError, zlib.error):
        return False


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`options` says what to do with edges to unknown vertices, and which column of 2-D masks to take."""
    files = _files(path)
    features = read_features(files["features"])
    index = _index(features, files["features"])
    labels = read_labels(files["labels"], as_text=index.is_text)
    edges = read_edges(files["edges"], as_text=index.is_text)
    sources, targets, dropped = _rows(edges, index, options.drop_unknown_edges)
    label_rows = _label_rows(labels, index, files["labels"])
    return RawGraph(
        format="edge_list",
        node_ids=index.node_ids,
        sources=sources,
        targets=targets,
        features=features.values,
        labels=_spread(labels.values, label_rows, index.num_nodes),
        masks=_masks(files, index, labels, label_rows, options.split_index),
        edges_are_a_set=False,
        undirected=None,
        usual_normalization="none",
        defaults=DEFAULTS,
        notes=(*edges.notes, *features.notes, *labels.notes, *dropped),
    )


def _has_pairs(head: bytes, path: Path) -> bool:
    if b"\0" in head or head[:2] in (b"PK", b"\xff\xfe", b"\xfe\xff"):
        return False
    first = next(lines_of_head(head, path), None)
    return first is not None and len(first.fields) >= 2


def _candidates(folder: Path, stem: str) -> list[Path]:
    names = [f"{stem}{suffix}{packed}" for suffix in SUFFIXES for packed in ("", ".gz")]
    return [folder / name for name in names if (folder / name).is_file()]


def _files(path: Path) -> dict[str, Path]:
    if not path.is_dir():
        raise DatasetError(
            what=f"{path} is an edge list alone: it has no features and no labels",
            why="a model learns labels from features",
            fix="put it into a folder as edges.csv beside features.csv and labels.csv, and give the folder",
        )
    found: dict[str, Path] = {}
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
    missing = [stem for stem in ("features", "labels") if stem not in found]
    if missing:
        raise DatasetError(
            what=f"{path} has {found['edges'].name} but no {' and no '.join(missing)}",
            why="a model learns labels from features; features: degree | one_hot are for a later version",
            fix=f"add {' and '.join(f'{stem}.csv or {stem}.npy' for stem in missing)}, one row per vertex",
        )
    return found


def _index(features: FeatureTable, path: Path) -> NodeIndex:
    if features.ids is None:
        rows = np.arange(len(features.values), dtype=np.int64)
        return unique_index(rows, rows, path)
    return unique_index(features.ids, features.lines, path)


def _rows(edges: EdgeTable, index: NodeIndex, drop: bool) -> tuple[Array, Array, tuple[str, ...]]:
    """Rows of both ends, and a note when edges were dropped."""
    ends = np.concatenate([edges.sources, edges.targets])
    rows = index.rows(ends)
    sources, targets = rows[: len(edges.sources)], rows[len(edges.sources) :]
    known = (sources >= 0) & (targets >= 0)
    if known.all():
        return sources, targets, ()
    if not drop:
        bad = np.flatnonzero(rows < 0)
        lines = np.concatenate([edges.lines, edges.lines])
        bad = bad[np.argsort(lines[bad], kind="stable")]
        one_based = ends.dtype.kind == "i" and int(ends.min()) == 1 and int(ends.max()) == index.num_nodes
        where = "row" if ".npy" in edges.path.suffixes else "line"
        raise unknown_ids(index, ends[bad], lines[bad], edges.path, where=where, one_based=one_based)
    note = f"{edges.path.name}: {int((~known).sum())} of {len(known)} edges name a vertex that does not exist: dropped"
    return sources[known], targets[known], (note,)


def _label_rows(labels: LabelTable, index: NodeIndex, path: Path) -> Array:
    """The vertex of each label row. A vertex without a row is unlabelled, when labels have ids."""
    if labels.ids is None:
        num_rows = len(labels.values) if labels.values.ndim else 0
        if num_rows != index.num_nodes:
            raise DatasetError(
                what=f"{path} has {num_rows} rows for {index.num_nodes} vertices",
                why="without an id column row i is the label of vertex i; blank lines do not count",
                fix="give every vertex a row (-1 = unlabelled), or add an `id` column",
            )
        return np.arange(index.num_nodes)
    if not len(labels.ids):
        return np.zeros(0, dtype=np.int64)
    unique_index(labels.ids, labels.lines, path)
    rows = index.rows(labels.ids)
    if (rows < 0).any():
        raise unknown_ids(index, labels.ids[rows < 0], labels.lines[rows < 0], path, where="line")
    return rows


def _spread(values: Array, rows: Array, num_nodes: int) -> Array:
    """Label rows to vertex rows; the rest is unlabelled."""
    if len(rows) == num_nodes and (rows == np.arange(num_nodes)).all():
        return values
    values = values.astype(np.int64) if values.dtype.kind == "u" else values
    if values.dtype.kind == "U":
        spread = np.zeros((num_nodes, *values.shape[1:]), dtype=values.dtype)
    else:
        spread = np.full((num_nodes, *values.shape[1:]), -1 if values.dtype.kind == "i" else np.nan, dtype=values.dtype)
    spread[rows] = values
    return spread


def _masks(
    files: Mapping[str, Path], index: NodeIndex, labels: LabelTable, label_rows: Array, split_index: int
) -> dict[str, Array] | None:
    lists = [name for name in MASK_NAMES if name in files]
    given = [*(files[name].name for name in lists), *([files["masks"].name] if "masks" in files else [])]
    given += ["the split column of labels"] if labels.split is not None else []
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
    if labels.split is None:
        return None
    split = np.zeros(index.num_nodes, dtype="U5")
    split[label_rows] = labels.split
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

"""Plain arrays: one `.npz`, or a folder of `.npy` with `edge_index.npy` in it.

    edge_index or edges [2, E] or [E, 2];  source and target;  row and col;  or a matrix saved by SciPy
    weights: the array [E] that `edge_weight` names; `data` of a matrix
    x or features [N, F]    y or labels [N]    num_nodes    node_ids [N]: what the rows are called
    train_mask, val_mask, test_mask [N] or [N, S];  or train_idx, val_idx, test_idx: lists of rows

Edges join rows, counted from 0. `node_ids` are for the output only. The arrays do not say whether edges go both ways.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.adjacency import adjacency, weight_notes
from graph_server.ingest.archives import load_npy, load_npz, member_names
from graph_server.ingest.edge_rows import row_table, weighted_edge_rows
from graph_server.ingest.edge_text import ends_of_array
from graph_server.ingest.edge_weights import weight_array
from graph_server.ingest.ids import own_ids
from graph_server.ingest.masks import as_mask, listed_masks
from graph_server.ingest.memory import check_num_nodes
from graph_server.ingest.node_index import NodeIndex
from graph_server.ingest.raw_graph import MASK_NAMES, Array, RawGraph, ReaderDefaults, damaged

LOOKS_FOR = "arrays: one .npz with edge_index, x and y, or a folder with edge_index.npy, x.npy and y.npy"
DEFAULTS: ReaderDefaults = {}

EDGES = ("edge_index", "edges", "edge_list")
PAIRS = (("source", "target"), ("sources", "targets"), ("src", "dst"), ("row", "col"))
FEATURES = ("x", "features", "feature", "feat", "feats", "node_feat", "node_features")
LABELS = ("y", "labels", "label", "node_label", "node_labels")
IDS = ("node_ids", "node_id", "ids", "id", "node_names")
WEIGHTS = ("edge_weight", "edge_weights", "weights", "weight", "edge_attr")
_SPELLED = {"train": ("train",), "valid": ("val", "valid"), "test": ("test",)}
MASKS = {mask: tuple(f"{word}_mask" for word in words) for mask, words in _SPELLED.items()}
LISTS = {
    mask: tuple(name for word in words for name in (f"{word}_idx", f"{word}_index", f"idx_{word}"))
    for mask, words in _SPELLED.items()
}
_OF_OTHER_FORMATS = {"train_masks", "adj_indptr"}


def detect(path: Path) -> bool:
    """By the names of the arrays."""
    if path.is_dir():
        return (path / "edge_index.npy").is_file()
    names = member_names(path) if path.is_file() else frozenset()
    return _has_edges(names) and not names & _OF_OTHER_FORMATS


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`options.split_index` picks a column of 2-D masks; `allow_pickle` reads arrays of plain Python values."""
    arrays, skipped = _load(path, options.allow_pickle)
    features, labels, names = (_first(arrays, known) for known in (FEATURES, LABELS, IDS))
    wanted = options.edge_weight
    file, ends, side, weight_note = _edges(arrays, path, is_weighted=wanted is not None)
    num_nodes, count_note = _num_nodes(arrays, ends, side, path)
    check_num_nodes(num_nodes, path)
    for name in (*FEATURES, *LABELS):
        if name in arrays and (not arrays[name].ndim or len(arrays[name]) != num_nodes):
            raise damaged(path, f"{name} has shape {arrays[name].shape} for {num_nodes} vertices")
    table = row_table(file, ends[0], ends[1], None if wanted is None else _weights(arrays, wanted, ends, path))
    edges = weighted_edge_rows([table], NodeIndex(np.arange(num_nodes)), options.drop_unknown_edges)
    node_ids, id_note = own_ids(names, num_nodes, "node_ids", negative=options.negative_ids)
    return RawGraph(
        format="arrays",
        node_ids=node_ids,
        sources=edges.sources,
        targets=edges.targets,
        weights=edges.weights,
        features=features,
        labels=labels,
        masks=_masks(arrays, num_nodes, options.split_index, path),
        defaults=DEFAULTS,
        notes=(*edges.notes, *weight_note, *count_note, *id_note, *_unused(arrays, skipped, wanted)),
        why_no_features=_absent("features", FEATURES, arrays, skipped) if features is None else "",
        why_no_labels=_absent("labels", LABELS, arrays, skipped) if labels is None else "",
    )


def _has_edges(names: frozenset[str]) -> bool:
    pairs = any(source in names and target in names for source, target in PAIRS)
    return bool(names & set(EDGES)) or pairs or {"indices", "indptr", "shape"} <= names


def _load(path: Path, allow_pickle: bool) -> tuple[dict[str, Array], tuple[str, ...]]:
    if path.is_dir():
        return {file.stem: load_npy(file) for file in sorted(path.glob("*.npy"))}, ()
    return load_npz(path, allow_pickle=allow_pickle)


def _first(arrays: Mapping[str, Array], known: tuple[str, ...]) -> Array | None:
    found = [name for name in known if name in arrays]
    if len(found) > 1:
        raise DatasetError(
            what=f"the arrays {' and '.join(found)} are both there",
            why="both could be meant, and they may differ",
            fix="keep one of them",
        )
    return arrays[found[0]] if found else None


def _weights(arrays: Mapping[str, Array], wanted: str, ends: tuple[Array, Array], path: Path) -> Array:
    known = (*EDGES, *FEATURES, *LABELS, *IDS, *(name for pair in PAIRS for name in pair), "indices", "indptr", "shape")
    names = [name for name in arrays if name not in known]
    found = arrays.get(wanted) if wanted in names else None
    return weight_array(found, wanted, path, num_edges=len(ends[0]), names=names)


def _edges(
    arrays: Mapping[str, Array], path: Path, *, is_weighted: bool
) -> tuple[Path, tuple[Array, Array], int | None, tuple[str, ...]]:
    """The file, both ends, the number of vertices where a matrix tells it, and notes on weights that are not used."""
    weights = () if is_weighted else weight_notes(_first(arrays, WEIGHTS), path)
    for name in EDGES:
        if name in arrays:
            file = path / f"{name}.npy" if path.is_dir() else path
            return file, ends_of_array(arrays[name], file, is_pair_of_rows=name == "edge_index"), None, weights
    if "shape" in arrays:
        matrix = adjacency(arrays, path)
        return path, (matrix.sources, matrix.targets), matrix.num_nodes, () if is_weighted else matrix.notes
    for source, target in PAIRS:
        if source in arrays and target in arrays:
            return path, (arrays[source], arrays[target]), None, weights
    raise damaged(path, "its edges are Python objects, or are missing")


def _num_nodes(
    arrays: Mapping[str, Array], ends: tuple[Array, Array], side: int | None, path: Path
) -> tuple[int, tuple[str, ...]]:
    if side is not None:
        return side, ()
    if (given := arrays.get("num_nodes")) is not None:
        if given.size != 1 or given.dtype.kind not in "iu" or int(given.reshape(-1)[0]) < 1:
            raise damaged(path, f"num_nodes is {given}; needed: one whole number")
        return int(given.reshape(-1)[0]), ()
    for name in (*FEATURES, *LABELS, *MASKS["train"], *IDS):
        if name in arrays and arrays[name].ndim:
            return len(arrays[name]), ()
    largest = max((float(end.max()) for end in ends if end.size and end.dtype.kind in "iuf"), default=0.0)
    if not 0 <= largest < 2**62:
        raise damaged(path, f"it has edges alone, and their largest end is {largest:g}")
    return int(largest) + 1, (f"no array tells the number of vertices: the largest end + 1 = {int(largest) + 1}",)


def _masks(arrays: Mapping[str, Array], num_nodes: int, split_index: int, path: Path) -> dict[str, Array] | None:
    masks = {name: _first(arrays, MASKS[name]) for name in MASK_NAMES}
    lists = {name: _first(arrays, LISTS[name]) for name in MASK_NAMES}
    if any(mask is not None for mask in masks.values()):
        absent = np.zeros(num_nodes, dtype=bool)
        return {
            name: as_mask(absent if mask is None else mask, num_nodes, split_index, where=f"{path}: {name} mask")
            for name, mask in masks.items()
        }
    rows = {name: rows.reshape(-1) for name, rows in lists.items() if rows is not None}
    for name, numbers in rows.items():
        if numbers.dtype.kind not in "iu":
            raise damaged(path, f"the list of {name} rows has dtype {numbers.dtype}; needed: whole numbers")
    return listed_masks(rows, num_nodes, path) if rows else None


def _unused(arrays: Mapping[str, Array], skipped: tuple[str, ...], weight: str | None) -> list[str]:
    known = {*EDGES, *FEATURES, *LABELS, *IDS, "num_nodes", "data", "indices", "indptr", "shape", "format"}
    known |= {name for names in (*PAIRS, *MASKS.values(), *LISTS.values()) for name in names}
    others = sorted(set(arrays) - known - {weight})
    notes = [f"{name} holds Python objects: skipped, never unpickled" for name in skipped]
    return [*notes, *([f"not used: {', '.join(others)}"] if others else [])]


def _absent(what: str, known: tuple[str, ...], arrays: Mapping[str, Array], skipped: tuple[str, ...]) -> str:
    if objects := [name for name in known if name in skipped]:
        return f"{objects[0]} holds Python objects: dataset.allow_pickle: true reads those that are plain values"
    return f"no array is named {', '.join(known)}; there are {', '.join(sorted(arrays))}: {what} are missing"


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    file, rows = folder / "ring.npz", np.arange(4)
    np.savez(
        file,
        edge_index=np.stack([rows, (rows + 1) % 4]),
        x=np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32),
        y=rows % 2,
        train_mask=rows < 2,
        val_mask=rows == 2,
        test_mask=rows == 3,
    )
    return file

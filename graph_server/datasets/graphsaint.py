"""GraphSAINT folders.

    adj_full.npz      SciPy CSR [N, N]; adj[i, j] is the edge i -> j
    feats.npy         [N, F]; their loader scales it by the train rows
    class_map.json    {"row": class} or {"row": [0, 1, ...]}, in any order; a row without an entry is unlabelled
    role.json         {"tr": [rows], "va": [rows], "te": [rows]}
    adj_train.npz     optional and not read: the edges between train rows, for inductive training

The file does not say whether edges go both ways.

Source: Zeng et al. 2020 (arXiv:1907.04931), and the loader of its repository.
"""

import json
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.adjacency import load_adjacency
from graph_server.ingest.archives import load_npy
from graph_server.ingest.masks import listed_masks
from graph_server.ingest.raw_graph import Array, RawGraph, ReaderDefaults, damaged, first_few

LOOKS_FOR = "GraphSAINT: a folder with adj_full.npz, class_map.json, role.json and feats.npy"
DEFAULTS: ReaderDefaults = {}

_Kind = TypeVar("_Kind")
_ROLES = {"train": "tr", "valid": "va", "test": "te"}


def detect(path: Path) -> bool:
    """A folder with adj_full.npz, and one of the others."""
    others = ("class_map.json", "role.json", "feats.npy")
    return (path / "adj_full.npz").is_file() and any((path / name).is_file() for name in others)


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """The split comes with the files; of `options` only `edge_weight`, `data`, changes something."""
    adjacency = load_adjacency(path / "adj_full.npz", options.edge_weight)
    num_nodes = adjacency.num_nodes
    labels, label_notes = _labels(path / "class_map.json", num_nodes)
    features = _features(path / "feats.npy", num_nodes)
    return RawGraph(
        format="graphsaint",
        node_ids=np.arange(num_nodes, dtype=np.int64),
        sources=adjacency.sources,
        targets=adjacency.targets,
        weights=adjacency.weights,
        features=features,
        labels=labels,
        masks=_masks(path / "role.json", num_nodes),
        usual_normalization="standard",
        defaults=DEFAULTS,
        notes=(*adjacency.notes, *label_notes, *_unread(path)),
        why_no_features=f"{path} lacks feats.npy" if features is None else "",
        why_no_labels=f"{path} lacks class_map.json" if labels is None else "",
    )


def _unread(path: Path) -> tuple[str, ...]:
    note = "adj_train.npz is not read: every epoch sees every edge, and inductive training is not in this version"
    return (note,) * (path / "adj_train.npz").is_file()


def _features(file: Path, num_nodes: int) -> Array | None:
    if not file.is_file():
        return None
    features = load_npy(file)
    if features.ndim != 2 or len(features) != num_nodes:
        raise damaged(file, f"it has shape {features.shape}; adj_full.npz has {num_nodes} vertices")
    return features


def _labels(file: Path, num_nodes: int) -> tuple[Array | None, tuple[str, ...]]:
    """[N] or [N, k]; the order in the file means nothing."""
    if not file.is_file():
        return None, ()
    entries = _decode(file, dict[str, int | list[int]])
    try:
        rows = np.array([int(key) for key in entries], dtype=np.int64)
        values = np.array(list(entries.values()), dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise damaged(file, f"needed: {{row: class}} or {{row: [0, 1, ...]}}, all of one length: {error}") from error
    outside = (rows < 0) | (rows >= num_nodes)
    if outside.any():
        raise damaged(file, f"it labels rows {first_few(rows[outside])}; adj_full.npz has {num_nodes} vertices")
    absent = np.setdiff1d(np.arange(num_nodes), rows)
    labels = np.full((num_nodes, *values.shape[1:]), -1, dtype=np.int64)
    labels[rows] = values
    note = f"{file.name} has no entry for {len(absent)} vertices: {first_few(absent)}; they are unlabelled"
    return labels, (note,) * bool(len(absent))


def _masks(file: Path, num_nodes: int) -> dict[str, Array] | None:
    if not file.is_file():
        return None
    roles = _decode(file, dict[str, list[int]])
    if unknown := set(roles) - set(_ROLES.values()):
        raise DatasetError(
            what=f"{file} names {', '.join(sorted(unknown))}",
            why="known are tr, va and te",
            fix="correct the names",
        )
    try:
        lists = {mask: np.array(roles.get(role, []), dtype=np.int64) for mask, role in _ROLES.items()}
    except OverflowError as error:
        raise damaged(file, error) from error
    return listed_masks(lists, num_nodes, file)


def _decode(file: Path, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise damaged(file, error) from error


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    np.savez(
        folder / "adj_full.npz",
        data=np.ones(4, bool),
        indices=np.array([1, 2, 3, 0], np.int32),
        indptr=np.arange(5, dtype=np.int32),
        shape=np.array([4, 4]),
        format=np.array(b"csr"),
    )
    np.save(folder / "feats.npy", np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32))
    for name, content in {
        "class_map": {"3": 1, "0": 0, "1": 1, "2": 0},
        "role": {"tr": [0, 1], "va": [2], "te": [3]},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder

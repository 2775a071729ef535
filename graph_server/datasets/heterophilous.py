"""Archives of the heterophilous-graphs repository: one `.npz` with ten splits.

    node_features [N, F]   node_labels [N]   edges [E, 2]            each pair of vertices once
    train_masks, val_masks, test_masks [S, N]                        `split_index` picks one of S

Edges are a set and go both ways, unless the file's name says `directed`.

Source: Platonov et al. 2023 (arXiv:2302.11640), and the reader of its repository.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from common.job_spec import DatasetSpec
from graph_server.ingest.archives import load_npz, member_names
from graph_server.ingest.edge_rows import row_edges
from graph_server.ingest.masks import as_mask
from graph_server.ingest.raw_graph import Array, RawGraph, ReaderDefaults, damaged

LOOKS_FOR = "heterophilous graphs: one .npz with node_features, node_labels, edges, train_masks, val_masks, test_masks"
DEFAULTS: ReaderDefaults = {}

PARTS = ("node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks")
_MASKS = {"train": "train_masks", "valid": "val_masks", "test": "test_masks"}


def detect(path: Path) -> bool:
    """A zip archive with these six arrays, whatever its name."""
    return path.is_file() and set(PARTS) <= member_names(path)


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`options.split_index` picks the split."""
    arrays, _ = load_npz(path, only=PARTS)
    if missing := [name for name in PARTS if name not in arrays]:
        raise damaged(path, f"{', '.join(missing)} are Python objects, not numbers")
    features, labels, edges = (arrays[name] for name in PARTS[:3])
    num_nodes = len(labels) if labels.ndim == 1 else 0
    if features.ndim != 2 or len(features) != num_nodes or edges.ndim != 2 or edges.shape[1] != 2:
        shapes = {name: arrays[name].shape for name in PARTS[:3]}
        raise damaged(path, f"the arrays do not fit together: {shapes}; needed: [N, F], [N], [E, 2]")
    sources, targets, notes = row_edges(path, edges[:, 0], edges[:, 1], num_nodes, drop=options.drop_unknown_edges)
    return RawGraph(
        format="heterophilous",
        node_ids=np.arange(num_nodes, dtype=np.int64),
        sources=sources,
        targets=targets,
        features=features,
        labels=labels,
        masks=_split(arrays, num_nodes, options.split_index, path),
        edges_are_a_set=True,
        undirected="directed" not in path.stem.lower().replace("undirected", ""),
        defaults=DEFAULTS,
        notes=(*notes, f"split {options.split_index} of {len(arrays['train_masks'])}"),
    )


def _split(arrays: Mapping[str, Array], num_nodes: int, split_index: int, path: Path) -> dict[str, Array]:
    splits = {mask: np.atleast_2d(arrays[name]).T for mask, name in _MASKS.items()}
    return {
        mask: as_mask(columns, num_nodes, split_index, where=f"{path}: {_MASKS[mask]}")
        for mask, columns in splits.items()
    }


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    file, rows = folder / "ring.npz", np.arange(4)
    np.savez(
        file,
        node_features=np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32),
        node_labels=rows % 2,
        edges=np.stack([rows, (rows + 1) % 4], axis=1),
        train_masks=np.stack([rows < 2, rows > 1]),
        val_masks=np.stack([rows == 2, rows == 1]),
        test_masks=np.stack([rows == 3, rows == 0]),
    )
    return file

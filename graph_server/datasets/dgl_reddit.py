"""The Reddit graph as DGL unpacks it: two archives in one folder.

    reddit_data.npz     feature [N, F], label [N], node_types [N] (1 train, 2 valid, 3 test), node_ids [N]
    reddit_graph.npz    SciPy COO or CSR [N, N]; reddit_self_loop_graph.npz has a loop at each vertex

Source: Hamilton et al. 2017 (arXiv:1706.02216), and the reader of the DGL repository.
"""

from pathlib import Path

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.adjacency import is_saved_matrix, load_adjacency
from graph_server.ingest.archives import load_npz, member_names
from graph_server.ingest.ids import own_ids
from graph_server.ingest.raw_graph import Array, RawGraph, ReaderDefaults, damaged, first_few

LOOKS_FOR = "DGL Reddit: a folder with *_data.npz (feature, label, node_types) and *_graph.npz"
DEFAULTS: ReaderDefaults = {}

NODE_TYPES = {"train": 1, "valid": 2, "test": 3}
_PARTS = ("feature", "label", "node_types")


def detect(path: Path) -> bool:
    """A folder with an archive of each kind; the archive of vertices alone is enough to be told what is missing."""
    return path.is_dir() and bool(_data_files(path))


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """The split comes with the files; of `options` only `edge_weight`, `data`, changes something."""
    data_file, graph_file = _files(path)
    arrays, _ = load_npz(data_file, only=(*_PARTS, "node_ids"))
    adjacency = load_adjacency(graph_file, options.edge_weight)
    num_nodes = adjacency.num_nodes
    for name in _PARTS:
        if name not in arrays or len(arrays[name].shape) < 1 or len(arrays[name]) != num_nodes:
            found = arrays[name].shape if name in arrays else "no numbers"
            raise damaged(data_file, f"{name}: {found}; {graph_file.name} has {num_nodes} vertices")
    node_ids, note = own_ids(arrays.get("node_ids"), num_nodes, "node_ids", negative=options.negative_ids)
    return RawGraph(
        format="dgl_reddit",
        node_ids=node_ids,
        sources=adjacency.sources,
        targets=adjacency.targets,
        weights=adjacency.weights,
        features=arrays["feature"],
        labels=arrays["label"],
        masks=_masks(arrays["node_types"], data_file),
        defaults=DEFAULTS,
        notes=(*adjacency.notes, *note),
    )


def _data_files(path: Path) -> list[Path]:
    return sorted(file for file in path.glob("*_data.npz") if set(_PARTS) <= member_names(file))


def _files(path: Path) -> tuple[Path, Path]:
    data, graphs = _data_files(path), sorted(file for file in path.glob("*_graph.npz") if is_saved_matrix(file))
    if len(data) != 1 or len(graphs) != 1:
        found = ", ".join(file.name for file in (*data, *graphs))
        raise DatasetError(
            what=f"{path} holds {len(data)} archives of vertices and {len(graphs)} of edges: {found}",
            why="needed are one of each: reddit_data.npz and reddit_graph.npz",
            fix="fetch the missing one" if not graphs else "keep one of each; reddit_self_loop_graph.npz is not needed",
        )
    return data[0], graphs[0]


def _masks(node_types: Array, file: Path) -> dict[str, Array]:
    kinds = node_types.reshape(-1)
    known = (0, *NODE_TYPES.values())
    if kinds.dtype.kind not in "iuf" or len(kinds) != len(node_types):
        raise damaged(file, f"node_types are {node_types.dtype} of shape {node_types.shape}; needed: one number each")
    if not np.isin(kinds, known).all():
        unknown = first_few(np.setdiff1d(kinds, known))
        raise damaged(file, f"node_types holds {unknown}; known: 1 train, 2 valid, 3 test, 0 none")
    return {mask: kinds == kind for mask, kind in NODE_TYPES.items()}


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    rows = np.arange(4)
    np.savez(
        folder / "reddit_data.npz",
        feature=np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float64),
        label=rows % 2,
        node_types=np.array([1, 1, 2, 3]),
        node_ids=rows + 10,
    )
    np.savez(
        folder / "reddit_graph.npz",
        row=rows.astype(np.int32),
        col=((rows + 1) % 4).astype(np.int32),
        data=np.ones(4),
        shape=np.array([4, 4]),
        format=np.array(b"coo"),
    )
    return folder

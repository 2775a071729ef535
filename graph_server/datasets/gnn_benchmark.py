"""gnn-benchmark `.npz`: adjacency and features as CSR pieces, labels as numbers.

    adj_{data,indices,indptr,shape}                             adj[i, j] is the edge i -> j
    attr_{data,indices,indptr,shape}  or  attr_matrix           features
    labels  or  labels_{data,indices,indptr,shape}              -1 = unlabelled
    node_names, class_names                                     optional; object arrays are skipped, or read by opt-in

Three additions of ours, all optional: `train_mask`, `valid_mask`, `test_mask` (bool [N], or [N, S] for S splits),
`undirected` (one bool) and integer `node_names`. Without `undirected` the file does not say, and the user is asked.

Source: Shchur et al. 2018 (arXiv:1811.05868) and the files of its repository.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse

from common.job_spec import DatasetSpec
from graph_server.ingest.adjacency import matrix_weights
from graph_server.ingest.archives import load_npz, member_names
from graph_server.ingest.defaults import CITATION_GRAPHS
from graph_server.ingest.ids import own_ids
from graph_server.ingest.masks import as_mask
from graph_server.ingest.raw_graph import MASK_NAMES, Array, RawGraph, damaged
from graph_server.ingest.sparse import as_dense, csr_of

LOOKS_FOR = "gnn-benchmark: one .npz with adj_data, adj_indices, adj_indptr, adj_shape"
DEFAULTS = CITATION_GRAPHS

CSR_PARTS = ("data", "indices", "indptr", "shape")


def detect(path: Path) -> bool:
    """A zip archive that holds the four pieces of the adjacency, whatever its name."""
    return path.is_file() and {f"adj_{part}" for part in CSR_PARTS} <= member_names(path)


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`options.split_index` picks a column of 2-D masks; `allow_pickle` reads names that are Python objects;
    `edge_weight: data` takes the adjacency's entries as weights."""
    arrays, skipped = load_npz(path, allow_pickle=options.allow_pickle)
    adjacency = _csr(arrays, "adj", path)
    if adjacency is None or adjacency.shape[0] != adjacency.shape[1]:
        raise damaged(path, f"the adjacency is no square matrix: {None if adjacency is None else adjacency.shape}")
    num_nodes = adjacency.shape[0]
    node_ids, id_note = own_ids(arrays.get("node_names"), num_nodes, "node_names", negative=options.negative_ids)
    features, labels = _matrix(arrays, "attr", "attr_matrix", path), _labels(arrays, path)
    _check_length(features, num_nodes, "attr", path)
    _check_length(labels, num_nodes, "labels", path)
    return RawGraph(
        format="gnn_benchmark",
        node_ids=node_ids,
        sources=np.repeat(np.arange(num_nodes, dtype=np.int64), np.diff(adjacency.indptr)),
        targets=adjacency.indices.astype(np.int64),
        weights=matrix_weights(adjacency.data, options.edge_weight, path, adjacency.nnz),
        features=features,
        labels=labels,
        masks=_masks(arrays, options.split_index, num_nodes, path),
        edges_are_a_set=False,
        undirected=_answer(arrays.get("undirected"), path),
        usual_normalization="row",
        defaults=DEFAULTS,
        notes=(*_notes(arrays, skipped, adjacency, options), *id_note),
    )


def _answer(undirected: Array | None, path: Path) -> bool | None:
    if undirected is None:
        return None
    if undirected.size != 1 or undirected.dtype.kind != "b":
        raise damaged(path, f"undirected is {undirected}; needed: one bool")
    return bool(undirected.reshape(-1)[0])


def _csr(arrays: Mapping[str, Array], prefix: str, path: Path) -> scipy.sparse.csr_matrix | None:
    """The matrix as stored: order, duplicates and explicit zeros are kept."""
    if not all(f"{prefix}_{part}" in arrays for part in CSR_PARTS):
        return None
    data, indices, indptr, shape = (arrays[f"{prefix}_{part}"] for part in CSR_PARTS)
    try:
        return csr_of(data, indices, indptr, shape)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise damaged(path, f"{prefix}_*: {error}") from error


def _matrix(arrays: Mapping[str, Array], prefix: str, dense: str, path: Path) -> Array | scipy.sparse.csr_matrix | None:
    sparse = _csr(arrays, prefix, path)
    return arrays.get(dense) if sparse is None else sparse


def _labels(arrays: Mapping[str, Array], path: Path) -> Array | None:
    labels = _matrix(arrays, "labels", "labels", path)
    return labels if labels is None or isinstance(labels, np.ndarray) else as_dense(labels, "labels", path)


def _check_length(rows: Array | scipy.sparse.csr_matrix | None, num_nodes: int, what: str, path: Path) -> None:
    if rows is not None and (len(rows.shape) not in (1, 2) or rows.shape[0] != num_nodes):
        raise damaged(path, f"{what} has shape {rows.shape} for {num_nodes} vertices")


def _masks(arrays: Mapping[str, Array], split_index: int, num_nodes: int, path: Path) -> dict[str, Array] | None:
    if "train_mask" not in arrays:
        return None
    absent = np.zeros(num_nodes, dtype=bool)
    return {
        name: as_mask(arrays.get(f"{name}_mask", absent), num_nodes, split_index, where=f"{path}: {name}_mask")
        for name in MASK_NAMES
    }


def _notes(
    arrays: Mapping[str, Array], skipped: tuple[str, ...], adjacency: scipy.sparse.csr_matrix, options: DatasetSpec
) -> tuple[str, ...]:
    notes = [f"{name} holds Python objects: skipped, never unpickled" for name in skipped]
    if options.edge_weight is None and len(adjacency.data) and (adjacency.data != 1).any():
        notes.append("the adjacency holds weights other than 1: edge weights are ignored")
    if "class_names" in arrays:
        notes.append("classes in order: " + ", ".join(str(name) for name in arrays["class_names"].reshape(-1)))
    return tuple(notes)


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    ring = scipy.sparse.csr_matrix((np.ones(4, np.float32), ([0, 1, 2, 3], [1, 2, 3, 0])), shape=(4, 4))
    names, rows = ("adj_data", "adj_indices", "adj_indptr", "adj_shape"), np.arange(4)
    file = folder / "ring.npz"
    np.savez(
        file,
        **dict(zip(names, (ring.data, ring.indices, ring.indptr, np.array(ring.shape)), strict=True)),
        attr_matrix=np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32),
        labels=rows % 2,
        train_mask=rows < 2,
        valid_mask=rows == 2,
        test_mask=rows == 3,
    )
    return file

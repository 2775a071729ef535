"""GraphData archives: one `.npz` whose matrices are pickled SciPy objects.

    adj_matrix     CSR [N, N]; adj[i, j] is the edge i -> j
    node_attr      CSR [N, F] or an array; may be absent
    node_label     [N]; may be absent

Pickles are read only when `allow_pickle` says so, and then by a reader that builds arrays and sparse matrices and
runs nothing that the pickle names. The matrix does not say whether edges go both ways.

Source: the files of the GraphData repository (EdisonLeeeee).
"""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.adjacency import matrix_weights, weight_notes
from graph_server.ingest.archives import load_npz, load_objects, member_names
from graph_server.ingest.raw_graph import Array, RawGraph, ReaderDefaults, damaged
from graph_server.ingest.sparse import as_dense

LOOKS_FOR = "GraphData: one .npz with adj_matrix, node_attr and node_label"
DEFAULTS: ReaderDefaults = {}

PARTS = ("adj_matrix", "node_attr", "node_label")


def detect(path: Path) -> bool:
    """A zip archive with adj_matrix, whatever its name."""
    return path.is_file() and "adj_matrix" in member_names(path)


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`options.allow_pickle` is needed for all but plain arrays; `edge_weight: data` takes the entries as weights."""
    parts: dict[str, Any]
    parts, objects = load_npz(path, only=PARTS)
    if objects and not options.allow_pickle:
        raise DatasetError(
            what=f"{path} holds pickled objects: {', '.join(objects)}",
            why="pickles can run any code; here they are read without running anything, but only when you say so",
            fix="set dataset.allow_pickle: true",
        )
    parts |= load_objects(path, objects)
    matrix = parts["adj_matrix"]
    if not isinstance(matrix, scipy.sparse.csr_matrix) or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        shape = getattr(matrix, "shape", type(matrix).__name__)
        raise damaged(path, f"adj_matrix is no square sparse matrix: {shape}")
    num_nodes = matrix.shape[0]
    features, labels = (_rows(parts.get(name), name, num_nodes, path) for name in ("node_attr", "node_label"))
    return RawGraph(
        format="graphdata",
        node_ids=np.arange(num_nodes, dtype=np.int64),
        sources=np.repeat(np.arange(num_nodes, dtype=np.int64), np.diff(matrix.indptr)),
        targets=matrix.indices.astype(np.int64),
        features=features,
        labels=labels if labels is None or isinstance(labels, np.ndarray) else as_dense(labels, "node_label", path),
        usual_normalization="row",
        defaults=DEFAULTS,
        weights=matrix_weights(matrix.data, options.edge_weight, path, matrix.nnz),
        notes=weight_notes(matrix.data, path) if options.edge_weight is None else (),
        why_no_features=f"{path.name} has no node_attr" if features is None else "",
        why_no_labels=f"{path.name} has no node_label" if labels is None else "",
    )


def _rows(rows: Any, name: str, num_nodes: int, path: Path) -> Array | scipy.sparse.csr_matrix | None:
    if rows is None:
        return None
    is_known = isinstance(rows, np.ndarray | scipy.sparse.csr_matrix)
    if not is_known or len(rows.shape) not in (1, 2) or rows.shape[0] != num_nodes or rows.dtype.kind not in "biuf":
        shape = rows.shape if is_known else type(rows).__name__
        raise damaged(path, f"{name} is {shape}; the graph has {num_nodes} vertices")
    return rows

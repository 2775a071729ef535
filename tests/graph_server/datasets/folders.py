"""Small datasets on disk, and in memory, for the tests of this room."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from common.job_spec import DatasetSpec
from graph_server.ingest.dataset import Dataset, apply_policies, prepare
from graph_server.ingest.raw_graph import RawGraph

RING = "0,1\n1,2\n2,3\n3,0\n1,0\n2,1\n3,2\n0,3\n"
FEATURES = "1,0\n0,1\n1,1\n2,0\n"
LABELS = "0\n1\n0\n1\n"


def write_folder(folder: Path, **contents: str | bytes | np.ndarray | None) -> Path:
    """A ring of four vertices; `edges_csv="..."` replaces edges.csv, `features_npy=array` adds features.npy; None:
    no such file."""
    chosen = {"edges_csv": RING, "features_csv": FEATURES, "labels_csv": LABELS} | contents
    stems = {name.partition("_")[0] for name in contents}
    folder.mkdir(exist_ok=True)
    for name, content in chosen.items():
        stem, _, suffix = name.partition("_")
        if content is None or (stem in stems and name not in contents):
            continue
        file = folder / f"{stem}.{suffix.replace('_', '.')}"
        if isinstance(content, np.ndarray):
            np.save(file, content)
        else:
            file.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def load(path: Path | str, **options: Any) -> Dataset:
    return prepare(DatasetSpec(path=str(path), **options), Path.cwd())


def raw_graph(**changes: Any) -> RawGraph:
    """Four vertices in a ring, both ways, two classes, no masks."""
    parts: dict[str, Any] = {
        "format": "small",
        "node_ids": np.arange(4),
        "sources": np.array([0, 1, 2, 3, 1, 2, 3, 0]),
        "targets": np.array([1, 2, 3, 0, 0, 1, 2, 3]),
        "features": np.array([[1, 0], [0, 1], [1, 1], [2, 0]], dtype=np.float32),
        "labels": np.array([0, 1, 0, 1]),
        "masks": None,
        "edges_are_a_set": False,
        "undirected": None,
        "usual_normalization": "none",
    }
    return RawGraph(**(parts | changes))


def applied(raw: RawGraph, **options: Any) -> Dataset:
    return apply_policies(raw, DatasetSpec(path="small", **options), name="small")


def masks(train: list[int], valid: list[int], test: list[int], num_nodes: int = 4) -> dict[str, np.ndarray]:
    rows = np.arange(num_nodes)
    return {"train": np.isin(rows, train), "valid": np.isin(rows, valid), "test": np.isin(rows, test)}


def write_planetoid(folder: Path, *, name: str = "tiny", test_ids: tuple[int, ...] = (5, 3)) -> Path:
    """Six vertices: x = rows 0-1, allx = rows 0-2, tx = the rows of `test_ids` in that order; id 4 is a gap."""
    one_hot = np.eye(2, dtype=np.int32)
    parts = {
        "x": scipy.sparse.csr_matrix(np.array([[1, 0], [0, 1]], dtype=np.float32)),
        "allx": scipy.sparse.csr_matrix(np.array([[1, 0], [0, 1], [1, 1]], dtype=np.float32)),
        "tx": scipy.sparse.csr_matrix(np.array([[number, 1] for number in test_ids], dtype=np.float32)),
        "y": one_hot[[0, 1]],
        "ally": one_hot[[0, 1, 0]],
        "ty": one_hot[[number % 2 for number in test_ids]],
        "graph": {0: [1, 1, 2], 1: [0, 0], 2: [0, 3], 3: [2], 5: [0]},
    }
    folder.mkdir(exist_ok=True)
    for part, content in parts.items():
        (folder / f"ind.{name}.{part}").write_bytes(pickle.dumps(content, protocol=2))
    (folder / f"ind.{name}.test.index").write_text("".join(f"{number}\n" for number in test_ids))
    return folder


def npz_arrays(**changes: Any) -> dict[str, Any]:
    """The gnn-benchmark arrays of three vertices in a directed path 0 -> 1 -> 2."""
    adjacency = scipy.sparse.csr_matrix((np.ones(2, np.float32), ([0, 1], [1, 2])), shape=(3, 3))
    parts = {
        **csr_pieces("adj", adjacency),
        "attr_matrix": np.array([[1, 1], [0, 2], [4, 0]], dtype=np.float32),
        "labels": np.array([0, 1, 1], dtype=np.int8),
    }
    return {name: array for name, array in (parts | changes).items() if array is not None}


def csr_pieces(prefix: str, matrix: scipy.sparse.csr_matrix) -> dict[str, Any]:
    return {
        f"{prefix}_data": matrix.data,
        f"{prefix}_indices": matrix.indices,
        f"{prefix}_indptr": matrix.indptr,
        f"{prefix}_shape": np.array(matrix.shape),
    }


def write_npz(file: Path, **changes: Any) -> Path:
    np.savez(file, **npz_arrays(**changes))
    return file


def write_graphdata(file: Path, **changes: Any) -> Path:
    """A ring of four vertices: SciPy matrices, pickled into arrays of one object."""
    ring = scipy.sparse.csr_matrix((np.ones(4, np.float32), ([0, 1, 2, 3], [1, 2, 3, 0])), shape=(4, 4))
    features = scipy.sparse.csr_matrix(np.array([[1, 0], [0, 1], [1, 1], [2, 0]], dtype=np.float32))
    parts = {"adj_matrix": ring, "node_attr": features, "node_label": np.array([0, 1, 0, 1], np.int32)} | changes
    np.savez(file, **{name: boxed(part) for name, part in parts.items() if part is not None})
    return file


def boxed(part: Any) -> np.ndarray:
    """What is no array becomes an array of one object, as `numpy.savez` makes of it."""
    if isinstance(part, np.ndarray):
        return part
    box = np.empty((), dtype=object)
    box[()] = part
    return box

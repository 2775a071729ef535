"""Files that hold graphs and are not read here: what each is, why not, and how to bring its graph along.

A row is tried only when no format of `graph_server/datasets/` fits; the first that fits is the answer.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from common.errors import DatasetError
from graph_server.ingest.archives import file_names

_TORCH_LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
_DGL_GRAPHS = bytes.fromhex("3fa1b446f04f2edd")
_MOST_JSON_BYTES = 64 << 20

_RUNS_CODE = "it is a pickle: loading it can run any code"
_FROM_PYG = (
    "export it where it was made: data = torch.load(file, weights_only=False); numpy.savez('graph.npz', "
    "edge_index=data.edge_index, x=data.x, y=data.y, train_mask=data.train_mask, val_mask=data.val_mask, "
    "test_mask=data.test_mask); give graph.npz"
)
_FROM_DGL = (
    "export it where it was made: g = dgl.load_graphs(file)[0][0]; numpy.savez('graph.npz', "
    "edge_index=numpy.stack(g.edges()), x=g.ndata['feat'], y=g.ndata['label'], train_mask=g.ndata['train_mask'], "
    "val_mask=g.ndata['val_mask'], test_mask=g.ndata['test_mask']); give graph.npz"
)
_AS_NPZ = "export edges, features and labels: numpy.savez('graph.npz', edge_index=..., x=..., y=...); give graph.npz"


class Foreign(NamedTuple):
    """A kind of file or folder; `fits` gets the path and its first bytes."""

    what: str
    fits: Callable[[Path, bytes], bool]
    why: str
    fix: str


def _is_torch(path: Path, head: bytes) -> bool:
    if head.startswith(_TORCH_LEGACY):
        return True
    return any(name.endswith("/data.pkl") for name in _members(path, head))


def _is_pyg_folder(path: Path, head: bytes) -> bool:
    return (path / "raw").is_dir() and any((path / "processed").glob("*.pt"))


def _is_torch_folder(path: Path, head: bytes) -> bool:
    return path.is_dir() and any(path.glob("*.pt"))


def _is_dgl_partition(path: Path, head: bytes) -> bool:
    return any((part / "graph.dgl").is_file() for part in path.glob("part*")) if path.is_dir() else False


def _has_json_keys(*keys: str) -> Callable[[Path, bytes], bool]:
    """A JSON file with these keys at its top, or a folder that holds one."""

    def fits(path: Path, head: bytes) -> bool:
        files = sorted(path.glob("*.json"))[:20] if path.is_dir() else [path] if head.lstrip()[:1] == b"{" else []
        return any(set(keys) <= _json_keys(file) for file in files)

    return fits


def _json_keys(file: Path) -> set[str]:
    try:
        if file.stat().st_size > _MOST_JSON_BYTES:
            return set()
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    return set(content) if isinstance(content, dict) else set()


def _members(path: Path, head: bytes) -> list[str]:
    return file_names(path) if head.startswith(b"PK") else []


FOREIGN = (
    Foreign("a folder that PyTorch Geometric made", _is_pyg_folder, "processed/ holds pickles of torch",
            "give its folder raw/, where the original files lie, or " + _FROM_PYG),
    Foreign("a file of torch (PyTorch Geometric, OGB's cache)", _is_torch, _RUNS_CODE, _FROM_PYG),
    Foreign("a folder of torch files", _is_torch_folder, "they are pickles: loading them can run any code", _FROM_PYG),
    Foreign("a file of DGL graphs", lambda path, head: head.startswith(_DGL_GRAPHS),
            "only DGL's own library reads it", _FROM_DGL),
    Foreign("a graph that DGL has partitioned", _is_dgl_partition, "only DGL's own library reads its parts",
            "give the graph as it was before: it is cut here anyway"),
    Foreign("a graph in DGL's chunks", _has_json_keys("graph_name", "num_nodes_per_chunk"),
            "chunks of features and edges lie in many files of several formats",
            "give its edges and vertices as Parquet: a folder with edges/ and nodes/"),
    Foreign("a description for GraphStorm", _has_json_keys("nodes", "edges", "version"),
            "it describes how to build features out of tables", "give its tables as Parquet, with features as numbers"),
    Foreign("a WikiCS data.json", _has_json_keys("features", "labels", "links"),
            "neighbour lists in JSON would have to be held as Python objects", _AS_NPZ),
    Foreign("a GraphSAGE -G.json", _has_json_keys("nodes", "links"),
            "graphs in JSON would have to be held as Python objects",
            "export it: networkx.to_scipy_sparse_array(graph) to adj_full.npz, as GraphSAINT has it"),
    Foreign("a pickle", lambda path, head: head[:1] == b"\x80" and head[1:2] in b"\2\3\4\5", _RUNS_CODE, _AS_NPZ),
    Foreign("an HDF5 file", lambda path, head: head.startswith(b"\x89HDF"),
            "HDF5 is not read in this version", _AS_NPZ),
    Foreign("a MATLAB file", lambda path, head: head.startswith(b"MATLAB"), "MATLAB files are not read",
            "take the MatrixMarket file (.mtx) of the same graph, or " + _AS_NPZ),
    Foreign("an XML file (GraphML, GEXF)", lambda path, head: head.lstrip(b"\xef\xbb\xbf \n").startswith(b"<"),
            "XML is not read", "export an edge list, one edge a line, and labels.csv beside it"),
    Foreign("an Excel workbook", lambda path, head: "xl/workbook.xml" in _members(path, head), "workbooks are not read",
            "save its sheets as CSV: edges.csv, features.csv, labels.csv"),
)  # fmt: skip


def foreign_error(path: Path) -> DatasetError | None:
    """The error for a kind of file that is known and not read; None for any other."""
    head = b""
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(4096)
    for kind in FOREIGN:
        if kind.fits(path, head):
            return DatasetError(what=f"{path} is {kind.what}", why=kind.why, fix=kind.fix)
    return None

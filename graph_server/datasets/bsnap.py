"""Binary files of the original Dorylus: `graph.bsnap`, `features.bsnap`, `labels.bsnap` in one folder.

    graph.bsnap       int32 4, uint32 vertices, uint64 edges, then uint32 source, uint32 target of each edge
    features.bsnap    uint32 width, then float32 rows
    labels.bsnap      uint32 number of classes, then uint32 of each vertex

Little-endian. There are no masks. The files do not say whether edges go both ways.
"""

from pathlib import Path
from typing import Any

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.edge_rows import row_edges
from graph_server.ingest.memory import check_num_nodes
from graph_server.ingest.raw_graph import Array, RawGraph, ReaderDefaults, damaged

LOOKS_FOR = "Dorylus: a folder with graph.bsnap, features.bsnap and labels.bsnap"
DEFAULTS: ReaderDefaults = {}

_HEADER = np.dtype([("id_bytes", "<i4"), ("num_nodes", "<u4"), ("num_edges", "<u8")])
_WORD = np.dtype("<u4")


def detect(path: Path) -> bool:
    """A folder with graph.bsnap."""
    return (path / "graph.bsnap").is_file()


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`options.drop_unknown_edges` leaves out edges beyond the announced number of vertices."""
    file = path / "graph.bsnap"
    header = _values(file, _HEADER, 0, count=1)[0]
    num_nodes, num_edges = int(header["num_nodes"]), int(header["num_edges"])
    if header["id_bytes"] != 4:
        raise damaged(file, f"its ids have {header['id_bytes']} bytes; known: 4")
    check_num_nodes(num_nodes, file)
    _check_bytes(file, _HEADER.itemsize + 8 * num_edges, f"{num_edges} edges")
    ends = _values(file, _WORD, _HEADER.itemsize).reshape(-1, 2)
    sources, targets, notes = row_edges(file, ends[:, 0], ends[:, 1], num_nodes, drop=options.drop_unknown_edges)
    features, labels = _features(path / "features.bsnap", num_nodes), _labels(path / "labels.bsnap", num_nodes)
    return RawGraph(
        format="bsnap",
        node_ids=np.arange(num_nodes, dtype=np.int64),
        sources=sources,
        targets=targets,
        features=features,
        labels=labels,
        defaults=DEFAULTS,
        notes=notes,
        why_no_features=f"{path} lacks features.bsnap" if features is None else "",
        why_no_labels=f"{path} lacks labels.bsnap" if labels is None else "",
    )


def _features(file: Path, num_nodes: int) -> Array | None:
    if not file.is_file():
        return None
    width = int(_values(file, _WORD, 0, count=1)[0])
    _check_bytes(file, 4 + 4 * width * num_nodes, f"{num_nodes} x {width} features")
    return _values(file, np.dtype("<f4"), 4).reshape(num_nodes, width)


def _labels(file: Path, num_nodes: int) -> Array | None:
    if not file.is_file():
        return None
    num_classes = int(_values(file, _WORD, 0, count=1)[0])
    _check_bytes(file, 4 + 4 * num_nodes, f"{num_nodes} labels")
    labels = _values(file, _WORD, 4)
    if (beyond := labels >= num_classes).any():
        vertex = int(np.flatnonzero(beyond)[0])
        raise DatasetError(
            what=f"{file}: vertex {vertex} has the label {labels[vertex]}, and {num_classes} classes are announced",
            why="the file is damaged, or its first number is wrong",
            fix="convert the labels again",
        )
    return labels.astype(np.int64)


def _check_bytes(file: Path, expected: int, what: str) -> None:
    if (found := file.stat().st_size) != expected:
        raise damaged(file, f"it has {found} bytes; {what} take {expected}")


def _values(file: Path, kind: np.dtype[Any], offset: int, count: int = -1) -> Array:
    try:
        values = np.fromfile(file, kind, count=count, offset=offset)
    except (OSError, ValueError, MemoryError) as error:
        raise damaged(file, error) from error
    if count > len(values):
        raise damaged(file, f"it has {file.stat().st_size} bytes, less than its header")
    return values


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    header = np.array([(4, 4, 4)], _HEADER).tobytes()
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0]], _WORD).tobytes()
    features = np.array([[1, 0], [0, 1], [1, 1], [2, 0]], "<f4").tobytes()
    (folder / "graph.bsnap").write_bytes(header + edges)
    (folder / "features.bsnap").write_bytes(np.array([2], _WORD).tobytes() + features)
    (folder / "labels.bsnap").write_bytes(np.array([2, 0, 1, 0, 1], _WORD).tobytes())
    return folder

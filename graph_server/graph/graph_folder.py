"""Writes a graph folder, all or nothing.

The files grow in a folder beside the final place; the manifest comes last, then one rename. Of two writers of the same
graph the second finds the first one's folder and drops its own; of two different graphs the later one stays.
"""

import contextlib
import errno
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from common.errors import DatasetError
from common.saga.tasks import Task
from graph_server.graph import manifest as manifests
from graph_server.graph.csr import Ints, Weights, has_self_loop, weight_sums
from graph_server.graph.cut import Cut
from graph_server.graph.deal import edges_from
from graph_server.graph.folder_reader import SUFFIX, GraphFolder, interval_file
from graph_server.graph.manifest import CutEntry, FileEntry, Manifest, plain
from graph_server.graph.relabelled import EdgesInMemory, RelabelledEdges
from graph_server.graph.truth import count_entries

__all__ = ["SUFFIX", "GraphFolder", "GraphSource", "write_graph_folder"]

TRAIN = 1
"""The bit of the train mask."""


class GraphSource(Protocol):
    """What is written of a dataset; row indices are the dataset's own, before the cut."""

    @property
    def name(self) -> str: ...
    @property
    def node_ids(self) -> npt.NDArray[Any]: ...
    @property
    def sources(self) -> Ints: ...
    @property
    def targets(self) -> Ints: ...
    @property
    def weights(self) -> Weights | None: ...
    @property
    def directed(self) -> bool: ...
    @property
    def features(self) -> npt.NDArray[np.float32]: ...
    @property
    def task(self) -> Task: ...
    @property
    def labels(self) -> npt.NDArray[Any]: ...
    @property
    def class_values(self) -> tuple[Any, ...]: ...
    @property
    def masks(self) -> npt.NDArray[np.uint8]: ...
    @property
    def report(self) -> Mapping[str, object]: ...
    @property
    def fingerprint(self) -> str: ...


def write_graph_folder(dataset: GraphSource, cut: Cut, path: Path, *, edges: RelabelledEdges | None = None) -> None:
    """Write `dataset`, cut as `cut` says, to `path`, a name that ends with .dorylus.

    edges  of a graph that does not fit in memory; the dataset's own are then not looked at

    Raises DatasetError if the name ends otherwise or is a file's.
    """
    path = Path(path)
    _check(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    growing = path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}"
    growing.mkdir()
    try:
        edges = edges or EdgesInMemory(dataset.sources, dataset.targets, cut, dataset.weights)
        manifest = _fill(_Files(growing), dataset, cut, edges)
        _publish(growing, path, manifest)
    finally:
        shutil.rmtree(growing, ignore_errors=True)


class _Files:
    """A growing folder: writes files and keeps their sizes and hashes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: dict[str, FileEntry] = {}

    def array(self, name: str, values: npt.NDArray[Any]) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            target = _HashingFile(file)
            np.lib.format.write_array(target, np.ascontiguousarray(values), allow_pickle=False)
        self.entries[name] = FileEntry(target.size, target.digest.hexdigest())

    def text(self, name: str, words: str) -> None:
        raw = words.encode()
        (self.folder / name).write_bytes(raw)
        self.entries[name] = FileEntry(len(raw), sha256(raw).hexdigest())


class _HashingFile:
    """Has the one method that `write_array` needs, so that a file is hashed while it is written."""

    def __init__(self, file: Any) -> None:
        self.file, self.digest, self.size = file, sha256(), 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        self.file.write(data)
        return len(data)


def _fill(files: _Files, dataset: GraphSource, cut: Cut, edges: RelabelledEdges) -> Manifest:
    _write_ids(files, np.asarray(dataset.node_ids)[cut.order])
    files.array("order.npy", cut.order)
    between = [_write_interval(files, interval, dataset, cut, edges) for interval in range(cut.num_intervals)]
    files.array("interval_edges.npy", np.stack(between))
    manifest = _describe(files, dataset, cut, edges)
    (files.folder / manifests.FILE_NAME).write_bytes(manifests.encode(manifest))
    return manifest


def _write_ids(files: _Files, ids: npt.NDArray[Any]) -> None:
    if ids.dtype.kind in "iu":
        files.array("ids.npy", ids.astype(np.int64))
    else:
        files.text("ids.json", json.dumps([str(name) for name in ids.tolist()], ensure_ascii=False))


def _write_interval(files: _Files, interval: int, dataset: GraphSource, cut: Cut, edges: RelabelledEdges) -> Ints:
    """Returns how many in-edges it has from each interval: [I] int64."""
    first, last = int(cut.bounds[interval]), int(cut.bounds[interval + 1])
    rows, block = cut.order[first:last], edges.block(interval)
    arrays: dict[str, npt.NDArray[Any]] = {
        "indptr": block.indptr,
        "sources": block.indices,
        "features": dataset.features[rows].astype(np.float32, copy=False),
        "labels": dataset.labels[rows].astype(np.int64 if dataset.task == "multi_class" else np.float32, copy=False),
        "masks": dataset.masks[rows].astype(np.uint8, copy=False),
        "loops": has_self_loop(block, first),
    }
    if block.weights is not None:
        arrays |= {"weights": block.weights, "weight_sums": weight_sums(block)}
    for name, values in arrays.items():
        files.array(interval_file(interval, name), values)
    return edges_from(block.indices, cut.bounds)


def _describe(files: _Files, dataset: GraphSource, cut: Cut, edges: RelabelledEdges) -> Manifest:
    num_classes = len(dataset.class_values)
    report = plain(dataset.report)
    class_values = plain(list(dataset.class_values))
    assert isinstance(report, dict)
    assert isinstance(class_values, list)
    return Manifest(
        format_version=manifests.WEIGHTED_VERSION if edges.weighted else manifests.FORMAT_VERSION,
        name=dataset.name,
        num_nodes=len(cut.order),
        num_edges=edges.num_edges,
        directed=bool(dataset.directed),
        symmetric=edges.symmetric,
        num_features=dataset.features.shape[1],
        feature_dtype="float32",
        num_classes=num_classes,
        class_values=tuple(class_values),  # type: ignore[arg-type]
        train_class_counts=count_entries(dataset.labels, (dataset.masks & TRAIN) != 0, num_classes),
        source_fingerprint=dataset.fingerprint,
        cut=CutEntry(cut.method, cut.seed, cut.num_intervals, cut.sha256, tuple(cut.bounds.tolist())),
        report=dict(report),
        files=files.entries,
        task=dataset.task,
    )


def _publish(growing: Path, path: Path, manifest: Manifest) -> None:
    """Rename into place. Another folder that stands there is moved aside first, unless it is the same graph."""
    while True:
        try:
            growing.rename(path)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if _holds(path, manifest):
            return
        aside = growing.with_name(growing.name + ".old")
        # Another writer may have moved it first: then there is room, and the next turn takes it.
        with contextlib.suppress(FileNotFoundError):
            path.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def _holds(path: Path, manifest: Manifest) -> bool:
    try:
        return GraphFolder.open(path).manifest.files == manifest.files
    except DatasetError:
        return False


def _check(path: Path) -> None:
    if path.suffix != SUFFIX:
        raise DatasetError(
            what=f"{path} is not the name of a graph folder",
            why=f"a folder that stands there is replaced, so its name must end with {SUFFIX}",
            fix=f"name it {path.name}{SUFFIX}",
        )
    if path.is_file():  # one look: another writer may move the folder aside between two
        raise DatasetError(what=f"{path} is a file", why="a graph folder is a folder", fix="choose another name")

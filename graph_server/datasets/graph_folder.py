"""A graph folder, NAME.dorylus/, as `dorylus convert` writes it: the graph as it was prepared for training.

Vertices come in the user's order, under the user's ids and labels. Direction, missing values and normalisation were
decided when it was written, and weights of edges are part of it; features are read as they are. Every file is checked
against the manifest's hash.

A training that asks for nothing else maps the folder itself and reads none of this.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.graph.csr import validate
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.manifest import FILE_NAME, Manifest
from graph_server.ingest.edge_weights import checked_weights, no_such_weights
from graph_server.ingest.masks import BITS
from graph_server.ingest.memory import check_num_nodes
from graph_server.ingest.raw_graph import MASK_NAMES, Array, EdgeWeights, RawGraph, ReaderDefaults, damaged

LOOKS_FOR = f"graph folder: a folder with {FILE_NAME} and intervals/, written by dorylus convert"
DEFAULTS: ReaderDefaults = {}
WEIGHTS = "weights"
"""What `edge_weight` may call them."""


class _Block(NamedTuple):
    """One interval. first, last: its relabelled ids; the arrays are those of IntervalArrays."""

    first: int
    last: int
    targets: Array
    sources: Array
    features: Array
    labels: Array
    masks: Array
    weights: Array | None


def detect(path: Path) -> bool:
    """By the names of what lies in it."""
    return path.is_dir() and (path / FILE_NAME).is_file() and (path / "intervals").is_dir()


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """Raises DatasetError for a folder that is not as it was written."""
    try:
        folder = GraphFolder.open(path, verify=True)
        check_num_nodes(folder.manifest.num_nodes, path)
        return _read(folder, options)
    except DatasetError:
        raise
    except Exception as error:  # the manifest is a text that anybody may have changed
        raise damaged(path, error) from error


def _read(folder: GraphFolder, options: DatasetSpec) -> RawGraph:
    manifest, order = folder.manifest, np.asarray(folder.cut.order)
    num_nodes = manifest.num_nodes
    _need(np.array_equal(np.sort(order), np.arange(num_nodes)), "order.npy is no permutation of the vertices")
    _need(
        folder.bounds.shape == (folder.num_intervals + 1,) and folder.bounds[[0, -1]].tolist() == [0, num_nodes],
        "bounds",
    )
    ids = np.asarray(folder.ids)
    _need(ids.shape == (num_nodes,) and len(np.unique(ids)) == num_nodes, "ids are not one per vertex, all different")
    features, masks = np.empty((num_nodes, manifest.num_features), np.float32), np.empty(num_nodes, np.uint8)
    truth = _no_labels(manifest)
    node_ids = np.empty_like(ids)
    node_ids[order] = ids
    ends: list[tuple[Array, Array]] = []
    weights: list[Array] = []
    for block in _blocks(folder):
        rows = order[block.first : block.last]
        features[rows], truth[rows], masks[rows] = block.features, block.labels, block.masks
        ends.append((order[block.sources], order[block.targets]))
        weights += [] if block.weights is None else [block.weights]
    sources, targets = (np.concatenate([end[side] for end in ends]) for side in (0, 1))
    return RawGraph(
        format="graph_folder",
        node_ids=node_ids,
        sources=sources,
        targets=targets,
        features=features,
        labels=_labels(truth, manifest) if manifest.task == "multi_class" else truth,
        task=manifest.task,
        masks={name: masks & BITS[name] != 0 for name in MASK_NAMES},
        undirected=not manifest.directed,
        weights=_weights(weights, folder, options.edge_weight),
        defaults=DEFAULTS,
        notes=(f"a graph folder of {manifest.name}: its policies were applied when it was written",),
    )


def _weights(parts: list[Array], folder: GraphFolder, wanted: str | None) -> EdgeWeights | None:
    """As they were written, whether `edge_weight` says so or not."""
    if wanted not in (None, WEIGHTS) or (wanted and not parts):
        raise no_such_weights(str(wanted), folder.path, (WEIGHTS,) * bool(parts))
    if not parts:
        return None
    found = checked_weights(np.concatenate(parts), folder.path)
    return found._replace(negative=str(folder.manifest.report.get("negative_weights", found.negative)))


def _blocks(folder: GraphFolder) -> Iterator[_Block]:
    for interval in range(folder.num_intervals):
        arrays = folder.interval(interval)
        first, last = int(folder.bounds[interval]), int(folder.bounds[interval + 1])
        rows = last - first
        _need(rows >= 0 and len(arrays.indptr) == rows + 1, f"interval {interval} has another number of rows")
        shapes = [array.shape for array in (arrays.features, arrays.labels, arrays.masks)]
        needed = [(rows, folder.manifest.num_features), _no_labels(folder.manifest, rows).shape, (rows,)]
        _need(shapes == needed, f"interval {interval} has {shapes}")
        validate(arrays.indptr, arrays.sources, folder.manifest.num_nodes)
        targets = np.repeat(np.arange(first, last), np.diff(arrays.indptr))
        weights = folder.weights(interval)
        _need(weights is None or weights.shape == arrays.sources.shape, f"interval {interval} has {weights}")
        yield _Block(first, last, targets, *arrays[1:5], weights)


def _no_labels(manifest: Manifest, num_rows: int | None = None) -> Array:
    rows = manifest.num_nodes if num_rows is None else num_rows
    if manifest.task == "multi_class":
        return np.full(rows, -1, np.int64)
    return np.full((rows, manifest.num_classes), np.nan, np.float32)


def _labels(classes: Array, manifest: Manifest) -> Array:
    """The user's labels; what is unlabelled is -1 among numbers and "" among texts."""
    values = manifest.class_values
    _need(bool(values) and classes.min() >= -1 and classes.max() < len(values), "labels are no classes of the manifest")
    is_text = isinstance(values[0], str)
    missing, kind = ("", np.str_) if is_text else (-1, np.int64)
    # Place -1 is the last one.
    return np.array([*values, missing], dtype=kind)[classes]


def _need(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(fault)

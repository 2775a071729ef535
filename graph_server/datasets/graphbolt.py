"""DGL GraphBolt OnDiskDataset folders, as they are before its own preprocessing; one kind of vertices and edges.

    metadata.yaml     graph: {nodes: [{type, num}], edges: [{type, format: csv | numpy, path}]}
                      feature_data: [{domain: node, type, name, format: numpy, path}]
                      tasks: [{name, train_set | validation_set | test_set: [{type, data: [{name, format, path}]}]}]

Edges are a text without header, or an array [2, E]; `edge_weight` names feature_data of the domain edge. Of the tasks
the first with labels of vertices is taken: its sets are the masks. Arrays in torch's format are refused. The files do
not say whether edges go both ways.

Source: the documentation of DGL's OnDiskDataset.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.archives import load_npy
from graph_server.ingest.edge_rows import row_table, weighted_edge_rows
from graph_server.ingest.edge_text import ends_of_array
from graph_server.ingest.edge_weights import no_such_weights, weight_array
from graph_server.ingest.heterogeneous import Relation, pick_relation
from graph_server.ingest.masks import listed_masks
from graph_server.ingest.memory import check_num_nodes
from graph_server.ingest.node_index import NodeIndex
from graph_server.ingest.number_text import read_whole_numbers
from graph_server.ingest.raw_graph import Array, RawGraph, ReaderDefaults, damaged
from graph_server.ingest.yaml_files import holds_keys, named_file, read_yaml

LOOKS_FOR = "GraphBolt OnDiskDataset: a folder with metadata.yaml that describes graph, feature_data and tasks"
DEFAULTS: ReaderDefaults = {}

META = "metadata.yaml"
_ONLY = Relation("_N", "_E", "_N")
_SETS = {"train": "train_set", "valid": "validation_set", "test": "test_set"}
_SEEDS = ("seeds", "seed_nodes", "items")


class _Nodes(msgspec.Struct, frozen=True):
    num: int
    type: str | None = None


class _Edges(msgspec.Struct, frozen=True):
    path: str
    format: Literal["csv", "numpy"]
    type: str | None = None


class _Graph(msgspec.Struct, frozen=True):
    nodes: list[_Nodes]
    edges: list[_Edges]


class _Data(msgspec.Struct, frozen=True):
    path: str
    format: str
    name: str = ""
    type: str | None = None
    domain: str = "node"


class _Part(msgspec.Struct, frozen=True):
    data: list[_Data] = []
    type: str | None = None


class _Task(msgspec.Struct, frozen=True):
    name: str = ""
    train_set: list[_Part] = []
    validation_set: list[_Part] = []
    test_set: list[_Part] = []


class _Meta(msgspec.Struct, frozen=True):
    graph: _Graph
    feature_data: list[_Data] | None = None
    tasks: list[_Task] | None = None


class _Taught(NamedTuple):
    """What a task says of the vertices."""

    labels: Array | None
    masks: dict[str, Array] | None
    notes: tuple[str, ...]


def detect(path: Path) -> bool:
    """By the keys of metadata.yaml."""
    return path.is_dir() and holds_keys(path / META, ("graph",))


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`edge_type` and `node_type` pick a part when the graph has several."""
    file = path / META
    meta = read_yaml(file, _Meta)
    relations = [_relation(part, file) for part in meta.graph.edges]
    relation = pick_relation(relations, options.edge_type, options.node_type, path)
    part, kind = meta.graph.edges[relations.index(relation)], None if relation == _ONLY else relation.source
    counts = [nodes.num for nodes in meta.graph.nodes if nodes.type == kind]
    if len(counts) != 1:
        raise damaged(file, f"graph.nodes gives {len(counts)} numbers of vertices of the type {kind}")
    check_num_nodes(counts[0], file)
    edge_file = named_file(file, part.path)
    ends = _ends(edge_file, part.format)
    weights = (
        None if options.edge_weight is None else _weights(meta, part.type, options.edge_weight, len(ends[0]), file)
    )
    table = row_table(edge_file, ends[0], ends[1], weights)
    edges = weighted_edge_rows([table], NodeIndex(np.arange(counts[0])), options.drop_unknown_edges)
    features, feature_notes = _features(meta, kind, counts[0], file)
    taught = _teach(meta.tasks or [], kind, counts[0], file)
    return RawGraph(
        format="graphbolt",
        node_ids=np.arange(counts[0], dtype=np.int64),
        sources=edges.sources,
        targets=edges.targets,
        features=features,
        labels=taught.labels,
        masks=taught.masks,
        defaults=DEFAULTS,
        notes=(*edges.notes, *feature_notes, *taught.notes),
        why_no_features=f"{META} names no feature_data for vertices",
        why_no_labels=f"{META} names no task with labels of vertices",
        edge_type=None if kind is None else str(relation),
        node_type=kind,
        weights=edges.weights,
    )


def _relation(part: _Edges, file: Path) -> Relation:
    if part.type is None:
        return _ONLY
    words = part.type.split(":")
    if len(words) != 3:
        raise damaged(file, f"the type of edges {part.type!r} is not source:name:target")
    return Relation(*words)


def _ends(file: Path, kind: str) -> tuple[Array, Array]:
    if kind == "numpy":
        return ends_of_array(load_npy(file), file, is_pair_of_rows=True)
    table = read_whole_numbers(file)
    if len(table) and table.shape[1] != 2:
        raise damaged(file, f"{table.shape[1]} columns; needed: source and target, without header and index")
    return table[:, 0], table[:, -1]


def _array(part: _Data, file: Path) -> Array:
    if part.format != "numpy":
        raise DatasetError(
            what=f"{part.path} has the format {part.format}",
            why="torch's files are pickles, and loading them could run any code",
            fix=f"save it with numpy.save(file, torch.load(file).numpy()), and write format: numpy in {META}",
        )
    return load_npy(named_file(file, part.path))


def _features(meta: _Meta, kind: str | None, num_nodes: int, file: Path) -> tuple[Array | None, tuple[str, ...]]:
    fitting = [part for part in meta.feature_data or [] if part.domain == "node" and part.type == kind]
    named = [part for part in fitting if part.name in ("feat", "feats", "features", "x")]
    chosen = (named or fitting)[:1]
    if not chosen:
        return None, ()
    features = _array(chosen[0], file)
    if features.ndim not in (1, 2) or len(features) != num_nodes:
        raise damaged(file.parent / chosen[0].path, f"it has shape {features.shape} for {num_nodes} vertices")
    others = [part.name for part in fitting if part is not chosen[0]]
    note = f"features: {chosen[0].name}; not used: {', '.join(others)}"
    return features.reshape(num_nodes, -1), (note,) * bool(others)


def _weights(meta: _Meta, kind: str | None, wanted: str, num_edges: int, file: Path) -> Array:
    """[E] of the feature of edges with this name."""
    of_edges = [part for part in meta.feature_data or [] if part.domain == "edge" and part.type == kind]
    names = [part.name for part in of_edges]
    if wanted not in names:
        raise no_such_weights(wanted, file, names)
    part = of_edges[names.index(wanted)]
    return weight_array(_array(part, file), wanted, file.parent / part.path, num_edges=num_edges, names=names)


def _teach(tasks: Sequence[_Task], kind: str | None, num_nodes: int, file: Path) -> _Taught:
    """Labels and masks of the first task that has labels of vertices."""
    for task in tasks:
        sets = {"train": task.train_set, "valid": task.validation_set, "test": task.test_set}
        taught = {mask: _seeds_and_labels(parts, kind, file) for mask, parts in sets.items()}
        if taught["train"] is None:
            continue
        labels = np.full((num_nodes, *_shape_of_one(taught.values(), file)), np.nan)
        rows = {mask: found[0] for mask, found in taught.items() if found is not None}
        masks = listed_masks(rows, num_nodes, file)
        for found in taught.values():
            if found is not None and found[1] is not None:
                labels[found[0]] = found[1]
        left_out = len(tasks) - 1
        return _Taught(labels, masks, (f"task: {task.name}; {left_out} others not used",) * bool(left_out))
    return _Taught(None, None, ())


def _seeds_and_labels(parts: Sequence[_Part], kind: str | None, file: Path) -> tuple[Array, Array | None] | None:
    """Rows [n] and their labels [n]; None when there are none, or when the rows are pairs of vertices."""
    for part in parts:
        data = {entry.name: entry for entry in part.data}
        seeds = next((data[name] for name in _SEEDS if name in data), None)
        if part.type != kind or seeds is None or "labels" not in data:
            continue
        rows, labels = _array(seeds, file), _array(data["labels"], file)
        if rows.ndim != 1:
            continue
        if rows.dtype.kind not in "iu" or labels.dtype.kind not in "biuf" or labels.shape[:1] != rows.shape:
            shapes = f"{rows.dtype} of shape {rows.shape} and {labels.dtype} of shape {labels.shape}"
            raise damaged(file.parent / seeds.path, f"seeds and labels are {shapes}")
        return rows, labels[:, 0] if labels.shape[1:] == (1,) else labels
    return None


def _shape_of_one(taught: Iterable[tuple[Array, Array | None] | None], file: Path) -> tuple[int, ...]:
    """() or (k,): what a vertex has of labels, the same in every set."""
    shapes = {found[1].shape[1:] for found in taught if found is not None and found[1] is not None}
    if len(shapes) != 1:
        raise damaged(
            file, f"the labels of its sets have the shapes {', '.join(map(str, sorted(shapes)))} for a vertex"
        )
    return next(iter(shapes))


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    rows = np.arange(4)
    arrays: dict[str, Array] = {
        "edges": np.stack([rows, (rows + 1) % 4]),
        "feat": np.array([[1, 0], [0, 1], [1, 1], [2, 0]], np.float32),
    }
    text = (
        "dataset_name: ring\n"
        "graph:\n  nodes: [{num: 4}]\n  edges: [{format: numpy, path: data/edges.npy}]\n"
        "feature_data: [{domain: node, name: feat, format: numpy, path: data/feat.npy}]\n"
        "tasks:\n- name: node_classification\n  num_classes: 2\n"
    )
    for mask, chosen in {"train": rows < 2, "valid": rows == 2, "test": rows == 3}.items():
        arrays |= {f"{mask}_seeds": rows[chosen], f"{mask}_labels": rows[chosen] % 2}
        names = {"seeds": f"data/{mask}_seeds.npy", "labels": f"data/{mask}_labels.npy"}
        entries = ", ".join(f"{{name: {name}, format: numpy, path: {path}}}" for name, path in names.items())
        text += f"  {_SETS[mask]}: [{{data: [{entries}]}}]\n"
    (folder / "data").mkdir()
    for name, array in arrays.items():
        np.save(folder / "data" / f"{name}.npy", array)
    (folder / META).write_text(text, encoding="utf-8")
    return folder

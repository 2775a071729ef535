"""From a path and the spec's policies to the one dataset a job trains on.

    locate -> detect -> read -> labels · edges · masks · features -> fingerprint

Nothing is changed silently: every count and every decision stands in `report`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from common.saga.tasks import Task
from graph_server.ingest.defaults import BUNDLED
from graph_server.ingest.detect import find_format, is_bundled_name, locate
from graph_server.ingest.edge_policies import Edges, apply_edge_policies
from graph_server.ingest.edge_weights import extremes, negative_weights
from graph_server.ingest.feature_policies import apply_feature_policies
from graph_server.ingest.fingerprint import fingerprint
from graph_server.ingest.label_policies import apply_label_policies
from graph_server.ingest.made_up_features import make_up_features
from graph_server.ingest.masks import BITS, check_masks, draw_split
from graph_server.ingest.raw_graph import MASK_NAMES, Array, RawGraph, ReaderDefaults


@dataclass(frozen=True)
class Dataset:
    """A graph, ready to be cut. Rows are in the order of the user's file."""

    name: str
    format: str
    node_ids: Array
    """[N] int64 or str: the user's ids."""
    sources: Array
    targets: Array
    """[E] int64 row indices. When not `directed`, every edge stands here in both directions."""
    directed: bool
    features: Array
    """[N, F] float32, C-contiguous."""
    labels: Array
    """[N] int64: class 0 .. C-1, -1 = unlabelled; or, where the task is no multi_class, [N, C] float32, NaN =
    unlabelled."""
    class_values: tuple[int | str, ...]
    """[C] the user's label value of each class, sorted; or the numbers of the columns."""
    masks: Array
    """[N] uint8: TRAIN = 1, VALID = 2, TEST = 4."""
    report: Mapping[str, object]
    """Counts, notes (what was decided) and warnings (what may be wrong)."""
    fingerprint: str
    """SHA-256 hex over all of the above but name and report."""
    task: Task = "multi_class"
    weights: Array | None = None
    """[E] float32, of each edge; None: every edge counts the same."""

    @property
    def num_nodes(self) -> int:
        return len(self.node_ids)

    @property
    def num_edges(self) -> int:
        return len(self.sources)

    @property
    def num_classes(self) -> int:
        return len(self.class_values)


def reader_defaults(options: DatasetSpec, base_folder: Path) -> ReaderDefaults:
    """model name -> {dotted spec key: value}: settings known to work. Looks at the format, reads no data."""
    path = locate(options, base_folder)
    if is_bundled_name(options.path) and options.path in BUNDLED:
        return BUNDLED[options.path]
    defaults: ReaderDefaults = find_format(options, path)[1].DEFAULTS
    return defaults


def prepare(options: DatasetSpec, base_folder: Path) -> Dataset:
    """Reads a bundled name, a file or a folder, and applies the policies.

    Raises DatasetError, with numbers, for everything that cannot be trained on as it is.
    """
    path = locate(options, base_folder)
    _, module = find_format(options, path)
    return apply_policies(module.read(path, options), options, name=dataset_name(path))


def apply_policies(raw: RawGraph, options: DatasetSpec, *, name: str) -> Dataset:
    """The same for every format."""
    check_size(raw)
    check_types(raw, options)
    labels = apply_label_policies(raw, options)
    edges = apply_edge_policies(raw, options)
    raw = make_up_features(raw, options, edges.targets)
    split, split_note = choose_split(raw, options, labels.strata)
    masks, mask_warnings = check_masks(split, labels.strata, raw.node_ids)
    features = apply_feature_policies(raw, options, split["train"])
    arrays = {
        "node_ids": raw.node_ids,
        "sources": edges.sources,
        "targets": edges.targets,
        "features": features.matrix,
        "labels": labels.truth,
        "masks": masks,
    }
    if edges.weights is not None:
        arrays["weights"] = edges.weights
    num_negative = count_negative(raw.node_ids)
    report = {
        "nodes": raw.num_nodes,
        "negative_ids": num_negative,
        **edges.counts,
        "directed": edges.directed,
        **weight_report(edges.weights, raw),
        "features": features.matrix.shape[1],
        "normalize_features": features.normalization,
        "nan_features": features.num_nan,
        "task": labels.task,
        "classes": len(labels.values),
        "unlabelled": int((labels.strata < 0).sum()),
        **{mask: int(((masks & BITS[mask]) > 0).sum()) for mask in MASK_NAMES},
        "notes": (*raw.notes, *id_notes(num_negative), *labels.notes, split_note, *_edge_notes(edges)),
        "warnings": (*labels.warnings, *mask_warnings, *features.warnings),
    }
    facts = {"directed": edges.directed, "class_values": labels.values}
    if labels.task != "multi_class":
        facts["task"] = labels.task
    return Dataset(
        name=name,
        format=raw.format,
        directed=edges.directed,
        class_values=labels.values,
        report=report,
        fingerprint=fingerprint(arrays, facts),
        task=labels.task,
        **arrays,
    )


def dataset_name(path: Path) -> str:
    """`cora` for cora.npz, for ind.cora.graph and for a folder cora/."""
    name = path.resolve().name
    if name.startswith("ind."):
        return name.split(".")[1]
    return name if path.is_dir() else name.split(".")[0] or name


def check_size(raw: RawGraph) -> None:
    """Raises DatasetError for no vertex, and for features or labels that are not one row for each."""
    if not raw.num_nodes:
        raise DatasetError("the dataset has no vertex", "there is nothing to train on", "give one row per vertex")
    for what, rows in (("features", raw.features), ("labels", raw.labels)):
        if rows is not None and rows.shape[0] != raw.num_nodes:
            raise DatasetError(
                what=f"{what} have {rows.shape[0]} rows for {raw.num_nodes} vertices",
                why="row i belongs to vertex i",
                fix="give one row per vertex",
            )


def check_types(raw: RawGraph, options: DatasetSpec) -> None:
    """A type, or a column of weights, that nothing was picked by is refused, never ignored."""
    if options.edge_weight is not None and raw.weights is None:
        raise DatasetError(
            what=f"dataset.edge_weight: {options.edge_weight}, but {raw.format} holds no weights of edges",
            why="there is no column to read them from",
            fix="remove dataset.edge_weight, or give the graph in a format that has weights",
        )
    for key, wanted, picked in (
        ("edge_type", options.edge_type, raw.edge_type),
        ("node_type", options.node_type, raw.node_type),
    ):
        if wanted is not None and picked is None:
            raise DatasetError(
                what=f"dataset.{key}: {wanted}, but the file has one kind of vertices and edges",
                why=f"{raw.format} names no types here, so there is no part to pick",
                fix=f"remove dataset.{key}",
            )


def choose_split(raw: RawGraph, options: DatasetSpec, strata: Array) -> tuple[Mapping[str, Array], str]:
    """bool [N] each: the file's masks, or a split drawn from `strata` (int64 [N], -1 = unlabelled); and a note."""
    if raw.masks is not None:
        uncovered = raw.num_nodes - int(np.logical_or.reduce([raw.masks[mask] for mask in MASK_NAMES]).sum())
        return raw.masks, f"masks of the file; {uncovered} vertices are in none"
    fractions = {mask: float(getattr(options.split, mask)) for mask in MASK_NAMES}
    shown = " / ".join(f"{fraction:g}" for fraction in fractions.values())
    note = f"no masks in the file: stratified split {shown} by split_seed {options.split_seed}"
    return draw_split(strata, fractions, options.split_seed), note


def weight_report(weights: Array | None, raw: RawGraph) -> dict[str, object]:
    """Nothing where edges have no weights."""
    if weights is None:
        return {}
    report: dict[str, object] = {"edge_weights": extremes(weights)}
    if negative := negative_weights(weights, raw):
        report["negative_weights"] = negative
    return report


def weight_notes(weights: Array | None) -> tuple[str, ...]:
    found = extremes(weights)
    return () if found is None else (f"edges have weights from {found[0]:g} to {found[1]:g}",)


def count_negative(node_ids: Array) -> int:
    return int((node_ids < 0).sum()) if node_ids.dtype.kind == "i" else 0


def id_notes(num_negative: int) -> tuple[str, ...]:
    return (f"{num_negative} vertices have negative ids, which are kept",) * bool(num_negative)


def _edge_notes(edges: Edges) -> tuple[str, ...]:
    notes, counts = [*weight_notes(edges.weights)], edges.counts
    if kept := counts["duplicate_edges"] - counts["duplicate_edges_removed"]:
        notes.append(f"{kept} duplicate edges are kept and count twice; dataset.dedup: true removes them")
    if removed := counts["duplicate_edges_removed"]:
        notes.append(f"{removed} duplicate edges removed")
    if others := counts.get("duplicate_edges_of_another_weight"):
        notes.append(f"{others} of them had another weight than the first, which is kept")
    if added := counts["reverse_edges_added"]:
        notes.append(f"{added} reverse edges added")
    return tuple(notes)

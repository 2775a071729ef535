"""A dataset whose edges are sorted on disk: the policies of one that is read whole, as far as rows alone decide."""

from pathlib import Path
from typing import Protocol

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.dataset import (
    Dataset,
    choose_split,
    count_negative,
    dataset_name,
    id_notes,
    weight_notes,
    weight_report,
)
from graph_server.ingest.fingerprint import fingerprint
from graph_server.ingest.label_policies import apply_label_policies
from graph_server.ingest.masks import BITS, check_masks
from graph_server.ingest.raw_graph import MASK_NAMES, Array, RawGraph
from graph_server.large.runs import Batches
from graph_server.large.sorted_edges import SortedEdges


class LargeGraph(Protocol):
    """raw: without edges, and known when they have been read; edges: in rows, the same whenever it is called."""

    folder: Path
    raw: RawGraph
    edges: Batches

    def features(self, options: DatasetSpec, train: Array, file: Path) -> Array:
        """[N, F] float32 after the policies; `file` is there to grow in."""
        ...


def large_dataset(graph: LargeGraph, options: DatasetSpec, edges: SortedEdges, features_file: Path) -> Dataset:
    """Everything but the edges."""
    raw = graph.raw
    labels = apply_label_policies(raw, options)
    split, split_note = choose_split(raw, options, labels.strata)
    masks, warnings = check_masks(split, labels.strata, raw.node_ids)
    features = graph.features(options, split["train"], features_file)
    arrays = {
        "node_ids": raw.node_ids,
        "indptr": edges.in_edges.indptr,
        "indices": edges.in_edges.indices,
        "features": features,
        "labels": labels.truth,
        "masks": masks,
    }
    weights = edges.in_edges.weights
    if weights is not None:
        arrays["weights"] = weights
    num_negative = count_negative(raw.node_ids)
    report = {
        "nodes": raw.num_nodes,
        "negative_ids": num_negative,
        **edges.counts,
        "directed": edges.directed,
        **weight_report(weights, raw),
        "features": features.shape[1],
        "task": labels.task,
        "classes": len(labels.values),
        "unlabelled": int((labels.strata < 0).sum()),
        **{mask: int(((masks & BITS[mask]) > 0).sum()) for mask in MASK_NAMES},
        "notes": (*raw.notes, *id_notes(num_negative), *labels.notes, split_note, *weight_notes(weights)),
        "warnings": (*labels.warnings, *warnings),
    }
    facts = {"directed": edges.directed, "class_values": labels.values, "task": labels.task, "edges": "sorted"}
    return Dataset(
        name=dataset_name(graph.folder),
        format=raw.format,
        node_ids=raw.node_ids,
        sources=raw.sources,
        targets=raw.targets,
        directed=edges.directed,
        features=features,
        labels=labels.truth,
        class_values=labels.values,
        masks=masks,
        report=report,
        fingerprint=fingerprint(arrays, facts),
        task=labels.task,
    )


def refuse_what_needs_all(options: DatasetSpec, raw: RawGraph) -> None:
    """Raises DatasetError for what looks at all rows of features together, or at all edges."""
    usual = options.normalize_features == "auto" and raw.usual_normalization == "standard"
    asked = {
        "features: degree or one_hot": options.features != "file",
        "normalize_features: standard": usual or options.normalize_features == "standard",
        "nan: mean": options.nan == "mean",
    }
    if wanted := [f"dataset.{key}" for key, is_so in asked.items() if is_so]:
        raise DatasetError(
            what=f"{' and '.join(wanted)} within --memory-limit",
            why="it looks at all rows together, and they go through piece by piece",
            fix="leave --memory-limit away, or set another value",
        )

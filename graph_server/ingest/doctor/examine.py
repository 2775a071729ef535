"""Looks at a dataset through the ingest's own steps: what they refuse, a training would refuse.

Where a step refuses and an option would get past it, the steps after it go on with that option, so that one look finds
all that is wrong. A dataset without features or labels is looked at for what it has.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from common.job_spec import DatasetSpec
from graph_server.ingest.dataset import check_size, check_types, choose_split
from graph_server.ingest.detect import find_format, locate
from graph_server.ingest.doctor.attempts import Attempt, Remedy, attempt, refusal
from graph_server.ingest.doctor.diagnosis import Diagnosis, EdgeFacts, FeatureFacts, Finding, Level, in_order
from graph_server.ingest.doctor.edges import edge_facts, edge_findings
from graph_server.ingest.doctor.features import feature_facts
from graph_server.ingest.doctor.labels import label_facts, label_findings, mask_facts, mask_findings
from graph_server.ingest.edge_policies import Edges, apply_edge_policies
from graph_server.ingest.feature_policies import Features, apply_feature_policies
from graph_server.ingest.label_policies import Labels, apply_label_policies
from graph_server.ingest.made_up_features import make_up_features
from graph_server.ingest.masks import mask_errors
from graph_server.ingest.raw_graph import Array, RawGraph

READING = (Remedy("drop_unknown_edges", True), Remedy("negative_ids", True))
DIRECTION = (Remedy("directed", False), Remedy("directed", True))
FEATURES = (
    Remedy("nan", "zero"),
    Remedy("nan", "mean"),
    Remedy("normalize_features", "none"),
    Remedy("normalize_features", "standard"),
)
MADE_UP = (Remedy("features", "degree"), Remedy("features", "one_hot"))


class _Looked(NamedTuple):
    """What each step gave. split: bool [N] each, or None where there is nothing to draw one from."""

    labels: Attempt[Labels]
    edges: Attempt[Edges]
    features: Attempt[Features]
    split: Mapping[str, Array] | None
    mask_refusals: tuple[Finding, ...]

    @property
    def refusals(self) -> tuple[Finding, ...]:
        return (*self.edges.findings, *self.labels.findings, *self.mask_refusals, *self.features.findings)


def examine(options: DatasetSpec, base_folder: Path) -> Diagnosis:
    """Of a bundled name, a file or a folder. Raises SpecError for an option that names nothing there is."""
    format_found = attempt("format", lambda given: find_format(given, locate(given, base_folder)), options)
    if format_found.value is None:
        return _refused(options, None, format_found.findings)
    name, module = format_found.value
    path = locate(options, base_folder)
    reading: Attempt[RawGraph] = attempt("read", lambda given: module.read(path, given), options, READING)
    if reading.value is None:
        return _refused(options, name, reading.findings)
    raw = reading.value
    size = attempt("size", lambda _: check_size(raw), options)
    if size.findings:
        return _refused(options, name, size.findings)
    types = attempt("types", lambda given: check_types(raw, given), options)
    return examine_graph(raw, options, (*reading.findings, *types.findings))


def examine_graph(raw: RawGraph, options: DatasetSpec, findings: tuple[Finding, ...] = ()) -> Diagnosis:
    """Of a graph with a vertex at least. `findings`: what was found before it was read."""
    looked = _look(raw, options)
    labels, edges, made = looked.labels.value, looked.edges.value, looked.features.value
    is_refused = bool(looked.edges.findings)
    about_edges = None if edges is None else edge_facts(raw, edges, looked.edges.options, is_refused=is_refused)
    about_features, feature_findings = feature_facts(raw, made)
    found = in_order((*findings, *looked.refusals, *feature_findings, *_noticed(raw, looked, about_edges)))
    return Diagnosis(
        path=options.path,
        format=raw.format,
        accepted=not any(finding.level is Level.REFUSED for finding in found),
        num_nodes=raw.num_nodes,
        num_edges=_num_edges(raw, looked.edges),
        num_features=_num_features(about_features, looked.features),
        num_classes=None if labels is None or labels.task == "regression" else len(labels.values),
        task=None if labels is None else labels.task,
        findings=found,
        notes=(*raw.notes, *(labels.notes if labels else ())),
        edges=about_edges,
        features=about_features,
        labels=None if labels is None else label_facts(labels, looked.split),
        masks=None if looked.split is None else mask_facts(raw, looked.split),
    )


def _look(raw: RawGraph, options: DatasetSpec) -> _Looked:
    labels = attempt("labels", lambda given: apply_label_policies(raw, given), options)
    edges = attempt("edges", lambda given: apply_edge_policies(raw, given), options, DIRECTION)
    split, mask_refusals = _masks(raw, options, labels.value)
    everyone = np.ones(raw.num_nodes, dtype=bool)
    train = split["train"] if split is not None and split["train"].any() else everyone
    targets = raw.targets if edges.value is None else edges.value.targets
    features = attempt(
        "features",
        lambda given: apply_feature_policies(make_up_features(raw, given, targets), given, train),
        options,
        MADE_UP if raw.features is None else FEATURES,
    )
    return _Looked(labels, edges, features, split, mask_refusals)


def _masks(
    raw: RawGraph, options: DatasetSpec, labels: Labels | None
) -> tuple[Mapping[str, Array] | None, tuple[Finding, ...]]:
    if labels is None and raw.masks is None:
        return None, ()
    # Without labels, masks are still checked against each other.
    strata = np.zeros(raw.num_nodes, dtype=np.int64) if labels is None else labels.strata
    split, _ = choose_split(raw, options, strata)
    return split, tuple(refusal("masks", error) for error in mask_errors(split, strata, raw.node_ids))


def _noticed(raw: RawGraph, looked: _Looked, about_edges: EdgeFacts | None) -> Iterator[Finding]:
    """What no step refuses."""
    labels, edges = looked.labels.value, looked.edges.value
    if edges is not None and about_edges is not None:
        yield from edge_findings(raw, edges, about_edges)
    if labels is not None:
        yield from label_findings(labels, looked.split)
    if looked.split is not None:
        yield from mask_findings(raw, looked.split, None if labels is None else labels.strata)


def _num_edges(raw: RawGraph, edges: Attempt[Edges]) -> int:
    return raw.num_edges if edges.value is None or edges.findings else len(edges.value.sources)


def _num_features(about: FeatureFacts | None, made: Attempt[Features]) -> int | None:
    if made.value is None or made.findings:
        return None if about is None else about.num_columns
    return int(made.value.matrix.shape[1])


def _refused(options: DatasetSpec, name: str | None, findings: tuple[Finding, ...]) -> Diagnosis:
    return Diagnosis(path=options.path, format=name, accepted=False, findings=findings)

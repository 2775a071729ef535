"""A diagnosis in words: sections of names and values, the same for a terminal and for a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cli.spec_flags import flag_name
from common.spec_keys import keys

if TYPE_CHECKING:
    # For their types alone: what makes a diagnosis takes seconds to load.
    from graph_server.ingest.doctor.diagnosis import (
        Diagnosis,
        EdgeFacts,
        FeatureFacts,
        Finding,
        LabelFacts,
        MaskFacts,
        MemoryForecast,
        TargetFacts,
        TimeForecast,
    )

MOST_CLASSES = 30


class Section(NamedTuple):
    title: str
    rows: list[tuple[str, str]]


class Bar(NamedTuple):
    """One bar of a histogram."""

    label: str
    num_vertices: int


def headline(diagnosis: Diagnosis) -> str:
    counts = (
        (diagnosis.num_nodes, "vertices"),
        (diagnosis.num_edges, "edges"),
        (diagnosis.num_features, "features"),
        (diagnosis.num_classes, "labels" if diagnosis.task == "multi_label" else "classes"),
    )
    known = [f"{count:,} {what}" for count, what in counts if count is not None]
    known += ["regression"] if diagnosis.task == "regression" else []
    return f"{diagnosis.path}: {', '.join([diagnosis.format or 'no known format', *known])}"


def sections(diagnosis: Diagnosis) -> list[Section]:
    """Of what could be looked at."""
    found = []
    if diagnosis.edges is not None:
        found.append(Section("edges", _edges(diagnosis.edges)))
    if diagnosis.features is not None:
        found.append(Section("features of the file", _features(diagnosis.features)))
    if diagnosis.labels is not None:
        found.append(Section("labels", _labels(diagnosis.labels)))
    if diagnosis.masks is not None:
        found.append(Section("masks", _masks(diagnosis.masks)))
    if diagnosis.memory is not None:
        found.append(Section("memory, as counted", _memory(diagnosis.memory)))
    if diagnosis.time is not None and diagnosis.memory is not None:
        found.append(Section("time, as estimated", _time(diagnosis.time, diagnosis.memory.model)))
    return found


def degree_bars(edges: EdgeFacts) -> list[Bar]:
    return [
        Bar(f"{one.lowest:,}" if one.lowest == one.highest else f"{one.lowest:,}-{one.highest:,}", one.num_vertices)
        for one in edges.in_degrees
    ]


def class_bars(labels: LabelFacts) -> list[Bar]:
    return [Bar(str(one.value), one.num_vertices) for one in labels.classes[:MOST_CLASSES]]


def finding_rows(finding: Finding) -> list[tuple[str, str]]:
    """What stands below `what`."""
    rows = [("why", finding.why), ("fix", finding.fix)]
    rows += [("option", f"{option}  ({_as_flag(option)})") for option in finding.options]
    if finding.rows:
        dots = ", ..." if len(finding.rows) == 10 else ""
        rows.append((finding.rows_of, ", ".join(str(row) for row in finding.rows) + dots))
    return rows


def verdict(diagnosis: Diagnosis) -> str:
    if diagnosis.accepted:
        return "a training would start"
    refused = [finding for finding in diagnosis.findings if finding.level == "refused"]
    return f"a training would be refused: {'; '.join(finding.what for finding in refused)}"


def _as_flag(option: str) -> str:
    """`dataset.nan: zero` as it is typed."""
    key, _, value = option.partition(": ")
    flag = flag_name(key) or key
    if keys()[key].is_switch:
        return flag if value == "true" else f"--no-{flag[2:]}"
    return f"{flag} {value}"


def _edges(edges: EdgeFacts) -> list[tuple[str, str]]:
    direction = {None: "refused", True: "directed", False: "undirected"}[edges.directed]
    used = direction if edges.trained_on is None else f"{edges.trained_on:,}, {direction}"
    weights = [] if edges.weights is None else [("weights", f"{edges.weights[0]:g} to {edges.weights[1]:g}")]
    return [
        ("in the file", f"{edges.raw:,}"),
        ("without repeats", f"{edges.distinct:,}"),
        ("both ways", f"{edges.both_ways:,}"),
        ("trained on", used),
        ("reciprocity", f"{edges.reciprocity:.1%}"),
        ("self loops", f"{edges.self_loops:,}"),
        ("isolated vertices", f"{edges.isolated:,}"),
        ("zero in-degree", f"{edges.zero_in_degree:,}"),
        ("components", f"{edges.components:,}, the largest of {edges.largest_component:,} vertices"),
        ("in-degree", f"{edges.mean_in_degree:.1f} on average, at most {edges.largest_in_degree:,}"),
        *weights,
    ]


def _features(features: FeatureFacts) -> list[tuple[str, str]]:
    rows = [
        ("columns", f"{features.num_columns:,} of {features.dtype}{', sparse' if features.is_sparse else ''}"),
        ("not zero", f"{features.nonzero_share:.1%}"),
        ("NaN, Inf", f"{features.num_nan:,}, {features.num_inf:,}"),
        ("constant columns", f"{features.constant_columns:,}"),
        ("rows of zeros", f"{features.zero_rows:,}"),
    ]
    if features.smallest is not None and features.largest is not None:
        rows.append(("values", f"{features.smallest:.4g} to {features.largest:.4g}"))
    if features.smallest_deviation is not None and features.largest_deviation is not None:
        rows.append(("deviations", f"{features.smallest_deviation:.3g} to {features.largest_deviation:.3g}"))
    return rows


def _labels(labels: LabelFacts) -> list[tuple[str, str]]:
    if labels.targets:
        return [("unlabelled", f"{labels.unlabelled:,}"), *(_target(one) for one in labels.targets[:MOST_CLASSES])]
    rows = [("classes", f"{len(labels.classes):,}"), ("unlabelled", f"{labels.unlabelled:,}")]
    for one in labels.classes[:MOST_CLASSES]:
        of_train = "" if one.train is None else f", {one.train:,} / {one.valid:,} / {one.test:,} train / valid / test"
        rows.append((f"class {one.value}", f"{one.num_vertices:,}{of_train}"))
    if len(labels.classes) > MOST_CLASSES:
        rows.append(("...", f"{len(labels.classes) - MOST_CLASSES:,} more classes"))
    return rows


def _target(one: TargetFacts) -> tuple[str, str]:
    name, counted = f"target {one.value}", f"{one.num_vertices:,} vertices"
    if one.mean is None:
        return name, counted
    return (
        name,
        f"{counted}, {one.smallest:.4g} to {one.largest:.4g}, mean {one.mean:.4g}, deviation {one.deviation:.3g}",
    )


def _masks(masks: MaskFacts) -> list[tuple[str, str]]:
    return [
        ("from", "the file" if masks.of_the_file else "a split drawn by dataset.split"),
        ("train", f"{masks.train:,}"),
        ("valid", f"{masks.valid:,}"),
        ("test", f"{masks.test:,}"),
        ("in several", f"{masks.in_several:,}"),
        ("in none", f"{masks.in_none:,}"),
    ]


def _memory(memory: MemoryForecast) -> list[tuple[str, str]]:
    return [
        ("dataset", f"{_size(memory.dataset)} while it is read and cut"),
        ("graph folder", f"{_size(memory.graph_folder)} on disk"),
        ("training", f"{_size(memory.training)} on the graph servers ({memory.model})"),
        ("free here", _size(memory.available)),
    ]


def _time(time: TimeForecast, model: str) -> list[tuple[str, str]]:
    low, high = time.epoch_seconds
    on = f"{time.num_intervals:,} intervals on {time.num_cores} cores" if time.num_intervals > 1 else "1 interval"
    return [
        ("an epoch", f"{_seconds(low)} to {_seconds(high)}: {model}, {on} here"),
        (f"{time.num_epochs:,} epochs", f"{_seconds(time.num_epochs * low)} to {_seconds(time.num_epochs * high)}"),
        ("rates", "those of dorylus plan, assumed and not measured; evaluations come on top"),
    ]


def _seconds(number: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if number >= 2 * size:
            return f"{number / size:,.2g} {unit}" if number < 100 * size else f"{number / size:,.0f} {unit}"
    return f"{number:.2g} s" if number < 10 else f"{number:.0f} s"


def _size(number: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if number >= size:
            return f"{number / size:,.1f} {unit}"
    return f"{number / 1e3:,.1f} kB"

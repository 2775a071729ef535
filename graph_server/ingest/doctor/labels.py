"""Labels and masks: what there is to learn, who is judged by what, and what the masks leave out."""

from collections.abc import Iterator, Mapping

import numpy as np

from graph_server.graph.truth import known
from graph_server.ingest.doctor.diagnosis import (
    ClassFacts,
    Finding,
    LabelFacts,
    Level,
    MaskFacts,
    TargetFacts,
    first_rows,
)
from graph_server.ingest.label_policies import Labels
from graph_server.ingest.raw_graph import MASK_NAMES, Array, RawGraph, first_few

Masks = Mapping[str, Array]


def label_facts(labels: Labels, masks: Masks | None) -> LabelFacts:
    """masks   bool [N] each; None: there are none to count by"""
    unlabelled = int((labels.strata < 0).sum())
    if labels.task == "regression":
        columns = zip(labels.values, labels.truth.T, strict=True)
        return LabelFacts(classes=(), unlabelled=unlabelled, targets=tuple(_target(*column) for column in columns))
    in_each = {} if masks is None else {name: _count(labels, mask) for name, mask in masks.items()}
    totals = _count(labels, np.ones(len(labels.truth), dtype=bool))
    return LabelFacts(
        classes=tuple(
            ClassFacts(
                value=value,
                num_vertices=totals[place],
                **{name: in_each[name][place] if in_each else None for name in MASK_NAMES},
            )
            for place, value in enumerate(labels.values)
        ),
        unlabelled=unlabelled,
    )


def mask_facts(raw: RawGraph, masks: Masks) -> MaskFacts:
    times = np.sum([masks[name] for name in MASK_NAMES], axis=0)
    return MaskFacts(
        of_the_file=raw.masks is not None,
        **{name: int(masks[name].sum()) for name in MASK_NAMES},
        in_several=int((times > 1).sum()),
        in_none=int((times == 0).sum()),
    )


def label_findings(labels: Labels, masks: Masks | None) -> Iterator[Finding]:
    unlabelled = labels.strata < 0
    if labels.task == "multi_class" and len(labels.values) == 1:
        yield Finding(
            code="one_class",
            level=Level.WARNING,
            what=f"all labelled vertices have the label {labels.values[0]}",
            why="-1 means unlabelled and is no class, so there is nothing to tell apart",
            fix="label the other class with a value of its own",
        )
    if unlabelled.any():
        yield Finding(
            code="unlabelled",
            level=Level.NOTE,
            what=f"{int(unlabelled.sum())} of {len(unlabelled)} vertices have no label",
            why="they pass messages on, and are neither trained on nor judged",
            fix="label those that are known",
            rows_of="vertices",
            rows=first_rows(unlabelled),
        )
    if masks is not None and labels.task != "regression":
        yield from _untrained(labels, masks["train"])


def _untrained(labels: Labels, train: Array) -> Iterator[Finding]:
    everywhere, trained = (np.array(_count(labels, rows)) for rows in (np.ones(len(train), dtype=bool), train))
    absent = np.flatnonzero((everywhere > 0) & (trained == 0))
    if len(absent):
        values, truth = np.array(labels.values)[absent], labels.truth
        yield Finding(
            code="untrained_classes",
            level=Level.WARNING,
            what=f"{len(absent)} of {len(labels.values)} classes have no train vertex: {first_few(values)}",
            why="the model cannot learn what it never sees",
            fix="put vertices of these classes into the train mask",
            rows_of="vertices",
            rows=first_rows(np.isin(truth, absent) if truth.ndim == 1 else (truth[:, absent] == 1).any(axis=1)),
        )


def mask_findings(raw: RawGraph, masks: Masks, labels: Array | None) -> Iterator[Finding]:
    """labels   int64 [N], -1 = unlabelled; None: unknown"""
    for name, use in (("valid", "the best weights are chosen by it"), ("test", "the result is told by it")):
        if not masks[name].any():
            yield Finding(
                code=f"empty_{name}",
                level=Level.WARNING,
                what=f"no vertex is in the {name} mask",
                why=use,
                fix=f"mark some labelled vertices as {name}"
                if raw.masks is not None
                else f"raise dataset.split.{name}",
            )
        elif labels is not None and (blind := masks[name] & (labels < 0)).any():
            yield Finding(
                code=f"unlabelled_{name}",
                level=Level.WARNING,
                what=f"{int(blind.sum())} of {int(masks[name].sum())} {name} vertices have no label",
                why=f"they cannot be judged, and are left out of the {name} metric",
                fix=f"label them, or take them out of the {name} mask",
                rows_of="vertices",
                rows=first_rows(blind),
            )
    covered = np.logical_or.reduce([masks[name] for name in MASK_NAMES])
    if raw.masks is not None and not covered.all():
        yield Finding(
            code="uncovered",
            level=Level.NOTE,
            what=f"{int((~covered).sum())} of {raw.num_nodes} vertices are in no mask",
            why="they pass messages on, and are neither trained on nor judged",
            fix="nothing to do, if that is meant",
            rows_of="vertices",
            rows=first_rows(~covered),
        )
    if raw.masks is None:
        yield Finding(
            code="drawn_split",
            level=Level.NOTE,
            what="the file has no masks: a split is drawn from the labels, class by class",
            why="results on a split of one's own cannot be compared with published ones",
            fix="add masks to the file, or change dataset.split and dataset.split_seed",
        )


def _count(labels: Labels, rows: Array) -> list[int]:
    """Vertices of each class, or with each label."""
    truth = labels.truth[rows]
    if truth.ndim == 1:
        counts: list[int] = np.bincount(truth[known(truth)], minlength=len(labels.values)).tolist()
    else:
        counts = (truth == 1).sum(axis=0).tolist()
    return counts


def _target(value: int | str, column: Array) -> TargetFacts:
    numbers = column[~np.isnan(column)].astype(np.float64)
    facts = [float(of(numbers)) if len(numbers) else None for of in (np.min, np.max, np.mean, np.std)]
    smallest, largest, mean, deviation = facts
    return TargetFacts(
        value=value, num_vertices=len(numbers), smallest=smallest, largest=largest, mean=mean, deviation=deviation
    )

"""Labels and masks: which classes there are, who is judged by what, and what the masks leave out."""

from collections.abc import Iterator, Mapping

import numpy as np

from graph_server.ingest.doctor.diagnosis import ClassFacts, Finding, LabelFacts, Level, MaskFacts, first_rows
from graph_server.ingest.label_policies import Classes
from graph_server.ingest.raw_graph import MASK_NAMES, Array, RawGraph, first_few

Masks = Mapping[str, Array]


def label_facts(classes: Classes, masks: Masks | None) -> LabelFacts:
    """masks   bool [N] each; None: there are none to count by"""
    num_classes = len(classes.values)
    in_each = {} if masks is None else {name: _count(classes.labels[mask], num_classes) for name, mask in masks.items()}
    totals = _count(classes.labels, num_classes)
    return LabelFacts(
        classes=tuple(
            ClassFacts(
                value=value,
                num_vertices=totals[place],
                **{name: in_each[name][place] if in_each else None for name in MASK_NAMES},
            )
            for place, value in enumerate(classes.values)
        ),
        unlabelled=int((classes.labels < 0).sum()),
    )


def mask_facts(raw: RawGraph, masks: Masks) -> MaskFacts:
    times = np.sum([masks[name] for name in MASK_NAMES], axis=0)
    return MaskFacts(
        of_the_file=raw.masks is not None,
        **{name: int(masks[name].sum()) for name in MASK_NAMES},
        in_several=int((times > 1).sum()),
        in_none=int((times == 0).sum()),
    )


def label_findings(classes: Classes, masks: Masks | None) -> Iterator[Finding]:
    unlabelled = classes.labels < 0
    if len(classes.values) == 1:
        yield Finding(
            code="one_class",
            level=Level.WARNING,
            what=f"all labelled vertices have the label {classes.values[0]}",
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
    if masks is not None:
        absent = np.setdiff1d(classes.labels[~unlabelled], classes.labels[masks["train"]])
        if len(absent):
            values = np.array(classes.values)[absent]
            yield Finding(
                code="untrained_classes",
                level=Level.WARNING,
                what=f"{len(absent)} of {len(classes.values)} classes have no train vertex: {first_few(values)}",
                why="the model cannot learn what it never sees",
                fix="put vertices of these classes into the train mask",
                rows_of="vertices",
                rows=first_rows(np.isin(classes.labels, absent)),
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


def _count(labels: Array, num_classes: int) -> list[int]:
    counts: list[int] = np.bincount(labels[labels >= 0], minlength=num_classes).tolist()
    return counts

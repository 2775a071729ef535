"""Labels become what a task learns: classes, labels that are there or not, or numbers.

-1, NaN, "" and all-zero one-hot rows are unlabelled; of a regression, NaN and "" alone: -1 is a number there.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from common.saga.tasks import Task
from graph_server.graph.truth import known
from graph_server.ingest.label_matrices import (
    numbers_of,
    one_hot_classes,
    refuse_no_matrix,
    targets_of,
    there_or_not,
    what_a_matrix_is,
)
from graph_server.ingest.raw_graph import Array, RawGraph, first_few

MISSING_TEXT = ("", "-1", "nan", "null", "none", "na", "n/a")


@dataclass(frozen=True)
class Labels:
    """truth    int64 [N], -1 = unlabelled; or float32 [N, outputs], NaN = unlabelled
    values   the user's label of each class; else the numbers of the columns
    """

    task: Task
    truth: Array
    values: tuple[int | str, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def strata(self) -> Array:
        """int64 [N]: the vertices that a split treats alike, -1 = unlabelled. Only classes are told apart."""
        if self.task == "multi_class":
            return self.truth
        return np.where(known(self.truth).any(axis=1), 0, -1)


def apply_label_policies(raw: RawGraph, options: DatasetSpec) -> Labels:
    """Raises DatasetError for no labels at all, and for what the task cannot be made of."""
    if raw.labels is None:
        raise DatasetError(
            what=f"the dataset has no labels for its {raw.num_nodes} vertices",
            why=raw.why_no_labels or "a model is taught by labels",
            fix="add labels, one per vertex: a folder with edges.csv, labels.csv and, if there are any, features.csv",
        )
    labels, notes = _squeezed(raw.labels)
    task, why = _task(labels, raw, options)
    made = _of_classes(labels) if task == "multi_class" else _of_columns(labels, task)
    if not known(made.truth).any():
        raise DatasetError(
            what=f"none of the {len(labels)} vertices has a label",
            why='-1, NaN, null and "" mean unlabelled',
            fix="label the vertices to train on",
        )
    return Labels(task, made.truth, made.values, (*notes, *why, *made.notes), made.warnings)


def _squeezed(labels: Array) -> tuple[Array, tuple[str, ...]]:
    """[N] or [N, k > 1]."""
    if labels.ndim == 1:
        return labels, ()
    if labels.ndim != 2 or labels.shape[1] == 0:
        raise DatasetError(f"labels of shape {labels.shape}", "a vertex has one row", "give one row of labels for each")
    if labels.shape[1] == 1:
        return labels[:, 0], (f"labels of shape {labels.shape} were taken as one column",)
    refuse_no_matrix(labels)
    return labels, ()


def _task(labels: Array, raw: RawGraph, options: DatasetSpec) -> tuple[Task, tuple[str, ...]]:
    """And how it was told, if the labels told."""
    if options.task != "auto":
        return options.task, ()
    if raw.task is not None:
        return raw.task, ()
    if labels.ndim == 2:
        return what_a_matrix_is(labels)
    if labels.dtype.kind == "f" and _has_fractions(labels):
        return "regression", ("labels that are no whole numbers: regression",)
    return "multi_class", ()


def _has_fractions(column: Array) -> bool:
    finite = column[np.isfinite(column)]
    return bool((finite != np.floor(finite)).any())


# ---- classes


def _of_classes(labels: Array) -> Labels:
    column, notes = (labels, []) if labels.ndim == 1 else one_hot_classes(labels)
    labelled, values = _known(column)
    found, classes = np.unique(values[labelled], return_inverse=True)
    truth = np.full(len(column), -1, dtype=np.int64)
    truth[labelled] = classes
    if len(found) and not np.array_equal(found, np.arange(len(found))):
        notes.append(f"labels {first_few(found)} became classes 0 .. {len(found) - 1}")
    return Labels("multi_class", truth, tuple(found.tolist()), tuple(notes), _doubts(found))


def _doubts(found: Array) -> tuple[str, ...]:
    if len(found) == 1:
        return (f"all labelled vertices have the label {found[0]}; -1 means unlabelled and is no class",)
    return ()


def _known(column: Array) -> tuple[Array, Array]:
    """Which vertices are labelled, and the labels as int64 or str."""
    if column.dtype.kind == "U":
        return ~np.isin(np.char.lower(np.char.strip(column)), MISSING_TEXT), column
    if column.dtype.kind not in "biuf":
        raise DatasetError(f"labels have dtype {column.dtype}", "a label is a number or a text", "convert the labels")
    labelled = ~np.isnan(column) if column.dtype.kind == "f" else np.ones(len(column), dtype=bool)
    given = column[labelled].astype(np.float64)
    if (given != np.floor(given)).any() or (np.abs(given) >= 2.0**53).any():
        raise DatasetError(
            what="labels that are no whole numbers below 2^53, and the task is multi_class",
            why="a class is a whole number or a text",
            fix="number the classes, or set dataset.task: regression",
        )
    values = np.full(len(column), -1, dtype=np.int64)
    values[labelled] = given.astype(np.int64)
    if (values < -1).any():
        raise DatasetError(
            what=f"{int((values < -1).sum())} labels are below -1: {first_few(np.unique(values[values < -1]))}",
            why=f"-1 means unlabelled; other negative labels are usually an overflow (dtype {column.dtype})",
            fix="number the classes from 0, or use text labels",
        )
    return labelled & (values != -1), values


# ---- labels that are there or not, and numbers


def _of_columns(labels: Array, task: Literal["multi_label", "regression"]) -> Labels:
    columns = labels if labels.ndim == 2 else labels[:, None]
    numbers = numbers_of(columns, task)
    truth, notes = there_or_not(numbers) if task == "multi_label" else targets_of(numbers)
    return Labels(task, truth, tuple(range(truth.shape[1])), notes)

"""Labels of several columns: one class each (one-hot), labels that are there or not, or numbers to be met."""

import numpy as np

from common.errors import DatasetError
from common.saga.tasks import Task
from graph_server.ingest.raw_graph import Array, first_few

_ZERO_ONE = (0, 1)


def refuse_no_matrix(labels: Array) -> None:
    if labels.dtype.kind not in "biuf":
        raise DatasetError(
            what=f"labels of shape {labels.shape} have dtype {labels.dtype}",
            why="several labels of a vertex are columns of 0 and 1, or of numbers",
            fix="give one column for each label, with 1 where a vertex has it",
        )


def what_a_matrix_is(labels: Array) -> tuple[Task, tuple[str, ...]]:
    """With a note. A matrix of 0 and 1 with at most one 1 in a row, and nothing missing in it, is one-hot."""
    missing = _missing(labels)
    if np.isin(labels[~missing], _ZERO_ONE).all():
        several = int(((labels == 1).sum(axis=1) > 1).sum())
        partly = missing.any(axis=1) & ~missing.all(axis=1)
        if not several and not partly.any():
            return "multi_class", ()
        holes = f", {int((missing & partly[:, None]).sum())} labels are missing" if partly.any() else ""
        shown = f"labels of {labels.shape[1]} columns of 0 and 1: multi_label"
        return "multi_label", (f"{shown}; {several} of {len(labels)} vertices have several{holes}",)
    finite = labels[np.isfinite(labels)] if labels.dtype.kind == "f" else labels
    if labels.dtype.kind == "f" and (finite != np.floor(finite)).any():
        return "regression", (f"labels of {labels.shape[1]} columns of numbers: regression",)
    raise DatasetError(
        what=f"labels of {labels.shape[1]} columns that are whole numbers other than 0 and 1",
        why="they may be numbers to be met, or several classes for each vertex",
        fix="set dataset.task: regression, or give one column of classes",
    )


def one_hot_classes(labels: Array) -> tuple[Array, list[str]]:
    """[N] the column of each row's 1, -1 where there is none; and notes."""
    missing = _missing(labels)
    if not np.isin(labels[~missing], _ZERO_ONE).all():
        raise DatasetError(
            what=f"labels of shape {labels.shape} that are no one-hot matrix",
            why="multi_class gives every vertex one class",
            fix="give one column of classes, or set dataset.task: regression",
        )
    ones = (labels == 1).sum(axis=1)
    if (ones > 1).any():
        raise DatasetError(
            what=f"{int((ones > 1).sum())} of {len(labels)} vertices have several labels",
            why="multi_class gives every vertex one class",
            fix="set dataset.task: multi_label",
        )
    empty = int((ones == 0).sum())
    note = f"one-hot labels of {labels.shape[1]} columns: multi_class; {empty} empty rows are unlabelled"
    return np.where(ones == 1, (labels == 1).argmax(axis=1), -1), [note]


def numbers_of(columns: Array, task: Task) -> Array:
    """[N, k] float64; texts are refused, but for those that are empty."""
    if columns.dtype.kind in "biuf":
        return columns.astype(np.float64)
    if columns.dtype.kind == "U":
        stripped = np.char.strip(columns)
        try:
            return np.where(stripped == "", "nan", stripped).astype(np.float64)
        except ValueError:
            pass
    raise DatasetError(
        what=f"labels of dtype {columns.dtype}, and the task is {task}",
        why=f"{task} reads numbers",
        fix="convert the labels, or set dataset.task: multi_class",
    )


def there_or_not(numbers: Array) -> tuple[Array, tuple[str, ...]]:
    """float32 [N, k] of 0, 1 and NaN."""
    missing = _missing(numbers)
    wrong = ~missing & ~np.isin(numbers, _ZERO_ONE)
    if wrong.any():
        raise DatasetError(
            what=f"{int(wrong.sum())} labels are neither 0 nor 1: {first_few(np.unique(numbers[wrong]))}",
            why="multi_label has one column for each label: 1 where a vertex has it, 0 where not, -1 or NaN if unknown",
            fix="give such columns, or set dataset.task: multi_class",
        )
    return np.where(missing, np.nan, numbers).astype(np.float32), ()


def targets_of(numbers: Array) -> tuple[Array, tuple[str, ...]]:
    """float32 [N, k] of numbers and NaN."""
    with np.errstate(over="ignore"):
        targets = numbers.astype(np.float32)
    bad = np.isinf(targets)
    if bad.any():
        raise DatasetError(
            what=f"{int(bad.sum())} labels are not finite in float32: rows {first_few(np.unique(np.nonzero(bad)[0]))}",
            why="the squared error of such a number is no number",
            fix="scale the labels, or leave those empty that are unknown",
        )
    minus_ones = int((numbers == -1).sum())
    note = f"{minus_ones} labels are -1: in a regression that is a number; unlabelled is NaN or empty"
    return targets, (note,) * bool(minus_ones)


def _missing(labels: Array) -> Array:
    return (labels == -1) | (np.isnan(labels) if labels.dtype.kind == "f" else False)

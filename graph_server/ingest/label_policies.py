"""Labels become classes 0 .. C-1, sorted by the user's value; -1, NaN, "" and all-zero one-hot rows are unlabelled."""

from dataclasses import dataclass

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.raw_graph import Array, RawGraph, first_few

MISSING_TEXT = ("", "-1", "nan", "null", "none", "na", "n/a")


@dataclass(frozen=True)
class Classes:
    """labels int64 [N], -1 = unlabelled; values: the user's label of each class."""

    labels: Array
    values: tuple[int | str, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def apply_label_policies(raw: RawGraph, options: DatasetSpec) -> Classes:
    """Raises DatasetError for no labels at all, and for what is not multi-class."""
    if options.task not in ("auto", "multi_class"):
        raise _not_in_this_version(f"dataset.task: {options.task}", "only multi_class is trained")
    if raw.labels is None:
        raise DatasetError(
            what=f"the dataset has no labels for its {raw.num_nodes} vertices",
            why=raw.why_no_labels or "a model is taught by labels",
            fix="add labels, one per vertex: a folder with edges.csv, labels.csv and, if there are any, features.csv",
        )
    column, notes = _one_column(raw.labels)
    known, values = _known(column)
    found, classes = np.unique(values[known], return_inverse=True)
    if not len(found):
        raise DatasetError(
            what=f"none of the {len(column)} vertices has a label",
            why='-1, NaN, null and "" mean unlabelled',
            fix="label the vertices to train on",
        )
    labels = np.full(len(column), -1, dtype=np.int64)
    labels[known] = classes
    if not np.array_equal(found, np.arange(len(found))):
        notes.append(f"labels {first_few(found)} became classes 0 .. {len(found) - 1}")
    return Classes(labels, tuple(found.tolist()), tuple(notes), _doubts(found))


def _doubts(found: Array) -> tuple[str, ...]:
    if len(found) == 1:
        return (f"all labelled vertices have the label {found[0]}; -1 means unlabelled and is no class",)
    return ()


def _one_column(labels: Array) -> tuple[Array, list[str]]:
    if labels.ndim == 1:
        return labels, []
    if labels.ndim != 2 or labels.shape[1] == 0:
        raise DatasetError(f"labels of shape {labels.shape}", "a vertex has one label", "give one column of labels")
    if labels.shape[1] == 1:
        return labels[:, 0], [f"labels of shape {labels.shape} were taken as one column"]
    return _from_one_hot(labels)


def _from_one_hot(labels: Array) -> tuple[Array, list[str]]:
    if labels.dtype.kind not in "biuf" or not np.isin(labels, (0, 1)).all():
        raise _not_in_this_version(
            f"labels of shape {labels.shape} that are no one-hot matrix", "a vertex has one label"
        )
    ones = labels.sum(axis=1)
    if (ones > 1).any():
        several = f"{int((ones > 1).sum())} of {len(labels)} vertices have several labels (multi_label)"
        raise _not_in_this_version(several, "only multi_class is trained")
    note = (
        f"one-hot labels of {labels.shape[1]} columns: multi_class; {int((ones == 0).sum())} empty rows are unlabelled"
    )
    return np.where(ones == 1, labels.argmax(axis=1), -1), [note]


def _known(column: Array) -> tuple[Array, Array]:
    """Which vertices are labelled, and the labels as int64 or str."""
    if column.dtype.kind == "U":
        known = ~np.isin(np.char.lower(np.char.strip(column)), MISSING_TEXT)
        return known, column
    if column.dtype.kind not in "biuf":
        raise DatasetError(f"labels have dtype {column.dtype}", "a label is a number or a text", "convert the labels")
    known = ~np.isnan(column) if column.dtype.kind == "f" else np.ones(len(column), dtype=bool)
    given = column[known].astype(np.float64)
    if (given != np.floor(given)).any() or (np.abs(given) >= 2.0**53).any():
        raise _not_in_this_version("labels that are no whole numbers (regression)", "only multi_class is trained")
    values = np.full(len(column), -1, dtype=np.int64)
    values[known] = given.astype(np.int64)
    if (values < -1).any():
        raise DatasetError(
            what=f"{int((values < -1).sum())} labels are below -1: {first_few(np.unique(values[values < -1]))}",
            why=f"-1 means unlabelled; other negative labels are usually an overflow (dtype {column.dtype})",
            fix="number the classes from 0, or use text labels",
        )
    return known & (values != -1), values


def _not_in_this_version(what: str, why: str) -> DatasetError:
    return DatasetError(f"{what}: not in this version", why, "give every vertex one class, or -1")

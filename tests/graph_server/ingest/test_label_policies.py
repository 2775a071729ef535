"""Labels of every layout become classes; what cannot be trained on is refused."""

import numpy as np
import pytest

from common.errors import DatasetError
from tests.graph_server.datasets.folders import applied, masks, raw_graph

SPLIT = masks([0, 1], [], [])


def labelled(labels, **options):
    return applied(raw_graph(labels=np.asarray(labels), masks=SPLIT), **options)


@pytest.mark.parametrize(
    ("labels", "classes", "values"),
    [
        (np.array([1, 40, 7, 1]), [0, 2, 1, 0], (1, 7, 40)),
        (np.array([1, 0, -1, 1], dtype=np.int8), [1, 0, -1, 1], (0, 1)),
        (np.array([3.0, 5.0, np.nan, 3.0]), [0, 1, -1, 0], (3, 5)),
        (np.array(["red", "blue", "", "null"]), [1, 0, -1, -1], ("blue", "red")),
        (np.array(["b", "a", "-1", "NaN"]), [1, 0, -1, -1], ("a", "b")),
        (np.array([[2], [4], [-1], [4]]), [0, 1, -1, 1], (2, 4)),
        (np.array([[0, 1], [1, 0], [0, 0], [1, 0]]), [1, 0, -1, 0], (0, 1)),
        (np.array([True, False, True, True]), [1, 0, 1, 1], (0, 1)),
        (np.array([200, 7, 7, 7], dtype=np.uint8), [1, 0, 0, 0], (7, 200)),
    ],
)
def test_every_layout(labels: np.ndarray, classes: list[int], values: tuple):
    dataset = labelled(labels)
    assert dataset.labels.tolist() == classes
    assert dataset.labels.dtype == np.int64
    assert dataset.class_values == values


def test_the_map_is_said():
    assert "labels 1, 7, 40 became classes 0 .. 2" in labelled([1, 40, 7, 1]).report["notes"]
    one_hot = labelled([[0, 1], [1, 0], [0, 0], [1, 0]])
    assert "one-hot labels of 2 columns: multi_class; 1 empty rows are unlabelled" in one_hot.report["notes"]
    assert one_hot.report["unlabelled"] == 1


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (np.array([[1, 1], [0, 1], [1, 0], [0, 0]]), r"1 of 4 vertices have several labels \(multi_label\)"),
        (np.array([[0.5, 0.5]] * 4), "no one-hot matrix: not in this version"),
        (np.array([0.5, 1.0, 2.0, 3.0]), r"\(regression\): not in this version"),
        (np.array([0.0, np.inf, 1.0, 1.0]), "not in this version"),
        (np.array([-1, -1, -1, -1]), "none of the 4 vertices has a label"),
        (np.array([1, -106, 2, 0], dtype=np.int8), r"1 labels are below -1: -106"),
        (np.array([b"a", b"b", b"a", b"b"]), "labels have dtype"),
        (np.zeros((4, 2, 2)), r"labels of shape \(4, 2, 2\)"),
    ],
)
def test_what_is_refused(labels: np.ndarray, reason: str):
    with pytest.raises(DatasetError, match=reason):
        labelled(labels)


def test_an_overflow_is_suspected():
    with pytest.raises(DatasetError, match="usually an overflow") as error:
        labelled(np.array([1, -106, 2, 0], dtype=np.int8))
    assert "int8" in error.value.why


def test_no_labels_and_other_tasks_are_refused():
    with pytest.raises(DatasetError, match="has no labels"):
        applied(raw_graph(labels=None))
    for task in ("multi_label", "regression"):
        with pytest.raises(DatasetError, match=f"task: {task}: not in this version"):
            labelled([0, 1, 0, 1], task=task)


def test_a_single_class_is_doubted():
    dataset = applied(raw_graph(labels=np.array([1, -1, 1, -1]), masks=masks([0], [2], [])))
    assert "all labelled vertices have the label 1" in dataset.report["warnings"][0]

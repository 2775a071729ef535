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
        (np.array([-1, -1, -1, -1]), "none of the 4 vertices has a label"),
        (np.full((4, 2), np.nan), "none of the 4 vertices has a label"),
        (np.array([1, -106, 2, 0], dtype=np.int8), r"1 labels are below -1: -106"),
        (np.array([b"a", b"b", b"a", b"b"]), "labels have dtype"),
        (np.zeros((4, 2, 2)), r"labels of shape \(4, 2, 2\)"),
        (np.array([["a", "b"]] * 4), r"labels of shape \(4, 2\) have dtype"),
        (np.array([[0, 2], [1, 0], [3, 1], [0, 0]]), "whole numbers other than 0 and 1"),
        (np.array([0.0, np.inf, 1.0, 1.0]), "no whole numbers"),
    ],
)
def test_what_is_refused(labels: np.ndarray, reason: str):
    with pytest.raises(DatasetError, match=reason):
        labelled(labels)


@pytest.mark.parametrize(
    ("labels", "task", "reason"),
    [
        (np.array([[1, 1], [0, 1], [1, 0], [0, 0]]), "multi_class", "1 of 4 vertices have several labels"),
        (np.array([[0.5, 0.5]] * 4), "multi_class", "that are no one-hot matrix"),
        (np.array([0.5, 1.0, 2.0, 3.0]), "multi_class", "no whole numbers"),
        (np.array([0, 1, 2, -3]), "multi_label", "2 labels are neither 0 nor 1: -3.0, 2.0"),
        (np.array(["a", "b", "a", "b"]), "multi_label", "labels of dtype <U1, and the task is multi_label"),
        (np.array(["a", "b", "a", "b"]), "regression", "labels of dtype <U1, and the task is regression"),
        (np.array([0.0, np.inf, 1e39, 1.0]), "regression", "2 labels are not finite in float32: rows 1, 2"),
    ],
)
def test_what_a_task_cannot_be_made_of(labels: np.ndarray, task: str, reason: str):
    with pytest.raises(DatasetError, match=reason):
        labelled(labels, task=task)


NAN = np.nan


@pytest.mark.parametrize(
    ("labels", "task", "targets", "note"),
    [
        (
            [[1, 1], [0, 1], [1, 0], [0, 0]],
            "multi_label",
            [[1, 1], [0, 1], [1, 0], [0, 0]],
            "1 of 4 vertices have several",
        ),
        (
            [[1, 0], [0, -1], [NAN, 0], [0, 0]],
            "multi_label",
            [[1, 0], [0, NAN], [NAN, 0], [0, 0]],
            "2 labels are missing",
        ),
        ([0.5, 1, 2, NAN], "regression", [[0.5], [1], [2], [NAN]], "no whole numbers: regression"),
        (
            [[0.5, 7], [1, 2], [NAN, 2], [3, 4]],
            "regression",
            [[0.5, 7], [1, 2], [NAN, 2], [3, 4]],
            "2 columns of numbers",
        ),
    ],
)
def test_the_labels_tell_the_task(labels: list, task: str, targets: list, note: str):
    dataset = labelled(np.array(labels, dtype=np.float64))
    assert (dataset.task, dataset.report["task"]) == (task, task)
    assert np.array_equal(dataset.labels, np.array(targets), equal_nan=True)
    assert dataset.labels.dtype == np.float32
    assert dataset.class_values == tuple(range(len(targets[0])))
    assert any(note in said for said in dataset.report["notes"])


@pytest.mark.parametrize(
    ("labels", "task", "targets"),
    [
        ([0, 1, -1, 1], "regression", [[0], [1], [-1], [1]]),
        ([0, 1, -1, 1], "multi_label", [[0], [1], [NAN], [1]]),
        (["0.5", "2", "", "-1"], "regression", [[0.5], [2], [NAN], [-1]]),
        ([[1, 0], [0, 1], [0, 0], [1, 0]], "multi_label", [[1, 0], [0, 1], [0, 0], [1, 0]]),
    ],
)
def test_the_task_may_be_asked_for(labels: list, task: str, targets: list):
    dataset = labelled(labels, task=task)
    assert np.array_equal(dataset.labels, np.array(targets), equal_nan=True)


def test_in_a_regression_minus_one_is_a_number_and_that_is_said():
    assert any("1 labels are -1" in note for note in labelled([0, 1, -1, 1], task="regression").report["notes"])


def test_a_row_of_a_one_hot_matrix_may_be_unknown():
    assert labelled(np.array([[0, 1], [1, 0], [-1, -1], [1, 0]])).labels.tolist() == [1, 0, -1, 0]


def test_a_vertex_with_one_known_label_may_be_trained_on_and_one_without_may_not():
    half = np.array([[1, NAN], [0, 1], [1, 1], [NAN, NAN]])
    assert labelled(half).report["train"] == 2
    with pytest.raises(DatasetError, match="1 train vertices have no label: 3"):
        applied(raw_graph(labels=half, masks=masks([0, 3], [], [])))


def test_a_split_of_what_has_no_classes_is_drawn_over_all_labelled_vertices():
    dataset = applied(raw_graph(labels=np.array([0.5, 1.5, NAN, 2.5])), split={"train": 0.67, "valid": 0.33, "test": 0})
    assert [dataset.report[name] for name in ("train", "valid", "test", "unlabelled")] == [2, 1, 0, 1]


def test_no_labels_are_refused():
    with pytest.raises(DatasetError, match="has no labels"):
        applied(raw_graph(labels=None))


def test_a_single_class_is_doubted():
    dataset = applied(raw_graph(labels=np.array([1, -1, 1, -1]), masks=masks([0], [2], [])))
    assert "all labelled vertices have the label 1" in dataset.report["warnings"][0]

"""What the doctor counts and finds among labels and masks."""

import numpy as np

from graph_server.ingest.doctor.diagnosis import ClassFacts, Level, MaskFacts, TargetFacts
from tests.graph_server.datasets.folders import masks
from tests.graph_server.ingest.doctor.looks import codes, finding, look_at


def test_each_class_by_mask():
    about = look_at(labels=np.array(["b", "a", "b", ""]), masks=masks([0, 1], [2], [])).labels
    assert about is not None
    assert about.classes == (
        ClassFacts(value="a", num_vertices=1, train=1, valid=0, test=0),
        ClassFacts(value="b", num_vertices=2, train=1, valid=1, test=0),
    )
    assert about.unlabelled == 1


def test_each_label_by_mask_where_vertices_have_several():
    labels = np.array([[1, 1], [0, 1], [1, np.nan], [np.nan, np.nan]])
    diagnosis = look_at(labels=labels, masks=masks([0, 1], [2], []))
    assert (diagnosis.task, diagnosis.num_classes) == ("multi_label", 2)
    assert diagnosis.labels is not None
    assert diagnosis.labels.classes == (
        ClassFacts(value=0, num_vertices=2, train=1, valid=1, test=0),
        ClassFacts(value=1, num_vertices=2, train=2, valid=0, test=0),
    )
    assert diagnosis.labels.unlabelled == 1
    never = look_at(labels=labels, masks=masks([1], [0], [2]))
    assert finding(never, "untrained_classes").rows == (0, 2)


def test_numbers_to_be_met():
    diagnosis = look_at(labels=np.array([0.5, 2.5, np.nan, 1.5]))
    assert (diagnosis.task, diagnosis.num_classes, diagnosis.accepted) == ("regression", None, True)
    assert diagnosis.labels is not None
    (target,) = diagnosis.labels.targets
    deviation = float(np.std([0.5, 1.5, 2.5]))
    assert target == TargetFacts(value=0, num_vertices=3, smallest=0.5, largest=2.5, mean=1.5, deviation=deviation)
    assert diagnosis.labels.unlabelled == 1


def test_labels_of_which_no_task_is_told_name_the_option():
    found = finding(look_at(labels=np.array([[0, 2], [1, 0], [3, 1], [0, 0]])), "labels")
    assert (found.level, found.options) == (Level.REFUSED, ("dataset.task: regression",))


def test_a_class_that_is_never_trained_on():
    found = finding(look_at(labels=np.array([5, 7, 9, 9]), masks=masks([0], [1], [2])), "untrained_classes")
    assert (found.level, found.rows) == (Level.WARNING, (1, 2, 3))
    assert found.what == "2 of 3 classes have no train vertex: 7, 9"


def test_one_class():
    assert finding(look_at(labels=np.array([1, 1, -1, 1])), "one_class").level is Level.WARNING


def test_every_fault_of_the_masks_at_once():
    diagnosis = look_at(labels=np.array([0, -1, 1, 1]), masks=masks([0, 1], [0, 2], [1, 2]))
    assert [one.what for one in diagnosis.findings if one.code == "masks"] == [
        "1 vertices are both train and valid: 0",
        "1 vertices are both train and test: 1",
        "1 vertices are both valid and test: 2",
        "1 train vertices have no label: 1",
    ]
    assert diagnosis.masks == MaskFacts(of_the_file=True, train=2, valid=2, test=2, in_several=3, in_none=1)


def test_what_masks_leave_out():
    diagnosis = look_at(labels=np.array([0, -1, 1, 1]), masks=masks([0, 2], [1], []))
    assert finding(diagnosis, "uncovered").rows == (3,)
    assert finding(diagnosis, "unlabelled_valid").rows == (1,)
    assert finding(diagnosis, "unlabelled").rows == (1,)
    assert finding(diagnosis, "empty_test").fix == "mark some labelled vertices as test"
    assert diagnosis.accepted


def test_masks_are_checked_without_labels_too():
    diagnosis = look_at(labels=None, masks=masks([0, 1], [1], [2]))
    assert codes(diagnosis) >= {"labels", "masks"}
    assert (diagnosis.num_classes, diagnosis.labels) == (None, None)


def test_a_drawn_split_is_said():
    diagnosis = look_at()
    assert finding(diagnosis, "drawn_split").level is Level.NOTE
    assert diagnosis.masks is not None
    assert not diagnosis.masks.of_the_file
    assert "uncovered" not in codes(diagnosis)
    assert look_at(labels=None).masks is None

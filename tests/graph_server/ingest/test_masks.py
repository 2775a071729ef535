"""Masks of the user are checked; without masks a seeded, stratified split is drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DatasetError
from graph_server.ingest.masks import as_mask, draw_split
from tests.examples import examples
from tests.graph_server.datasets.folders import applied, masks, raw_graph

FRACTIONS = {"train": 0.6, "valid": 0.2, "test": 0.2}


def test_bits():
    dataset = applied(raw_graph(masks=masks([0, 1], [2], [3])))
    assert dataset.masks.tolist() == [1, 1, 2, 4]
    assert dataset.masks.dtype == np.uint8


def test_masks_need_not_cover_all():
    dataset = applied(raw_graph(masks=masks([0, 1], [], [3])))
    assert dataset.masks.tolist() == [1, 1, 0, 4]
    assert "masks of the file; 1 vertices are in none" in dataset.report["notes"]


def test_overlap_is_refused_with_ids():
    raw = raw_graph(node_ids=np.array(["a", "b", "c", "d"]), masks=masks([0, 1], [2], [1, 3]))
    with pytest.raises(DatasetError, match="1 vertices are both train and test: b"):
        applied(raw)


def test_an_empty_train_mask_is_refused():
    with pytest.raises(DatasetError, match="no vertex of 4 is in the train mask"):
        applied(raw_graph(masks=masks([], [2], [3])))


def test_unlabelled_train_vertices_are_refused():
    raw = raw_graph(labels=np.array([0, -1, 1, -1]), masks=masks([0, 1, 3], [2], []))
    with pytest.raises(DatasetError, match="2 train vertices have no label: 1, 3"):
        applied(raw)


def test_unlabelled_test_vertices_are_left_out_and_counted():
    dataset = applied(raw_graph(labels=np.array([0, 1, -1, 1]), masks=masks([0, 1], [], [2, 3])))
    assert dataset.masks.tolist() == [1, 1, 0, 4]
    assert "1 test vertices have no label" in dataset.report["warnings"][0]


def test_a_class_missing_from_train_is_a_warning():
    dataset = applied(raw_graph(masks=masks([0, 2], [1], [3])))
    assert dataset.report["warnings"] == ("classes 1 have no train vertex: the model cannot learn them",)


def test_no_masks_give_a_split_and_a_note():
    dataset = applied(raw_graph(), split_seed=3)
    assert dataset.report["train"] >= 2
    assert "no masks in the file: stratified split 0.6 / 0.2 / 0.2 by split_seed 3" in dataset.report["notes"]


@given(
    labels=st.lists(st.integers(-1, 3), min_size=1, max_size=60).map(np.array),
    seed=st.integers(0, 2**40),
    parts=st.tuples(st.integers(1, 8), st.integers(0, 8), st.integers(0, 8)),
)
@settings(max_examples=examples(100))
def test_the_split_is_stratified(labels: np.ndarray, seed: int, parts: tuple[int, int, int]):
    fractions = {name: part / 24 for name, part in zip(FRACTIONS, parts, strict=True)}
    split = draw_split(labels, fractions, seed)
    together = sum(mask.astype(int) for mask in split.values())
    assert np.max(together) <= 1
    assert not together[labels < 0].any()
    for label in set(labels.tolist()) - {-1}:
        count = int((labels == label).sum())
        for name, mask in split.items():
            assert abs(int(mask[labels == label].sum()) - fractions[name] * count) <= 1.5
        assert split["train"][labels == label].any()


def test_the_split_depends_on_its_seed_alone():
    labels = np.arange(300) % 3
    first, again, other = (draw_split(labels, FRACTIONS, seed)["train"] for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    # A golden vector: the same seed gives the same split on every machine, with every version of NumPy.
    assert np.flatnonzero(first)[:8].tolist() == [0, 1, 2, 3, 5, 7, 8, 9]


def test_fractions_below_one_leave_vertices_unused():
    split = draw_split(np.zeros(100, int), {"train": 0.1, "valid": 0.1, "test": 0.1}, 0)
    assert [int(mask.sum()) for mask in split.values()] == [10, 10, 10]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1, 0, 1]), [True, False, True]),
        (np.array([[1.0], [0.0], [1.0]]), [True, False, True]),
        (np.array([[0, 1], [1, 0], [0, 1]]), [False, True, False]),
    ],
)
def test_masks_of_any_shape(values: np.ndarray, expected: list[bool]):
    assert as_mask(values, 3, 0, where="x").tolist() == expected


@pytest.mark.parametrize("values", [np.array([0, 2, 1]), np.array(["a", "b", "c"]), np.zeros((4, 3)), np.array(1)])
def test_what_is_no_mask_is_refused(values: np.ndarray):
    with pytest.raises(DatasetError, match="each 0 or 1"):
        as_mask(values, 3, 0, where="x")

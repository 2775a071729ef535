"""Weights of edges through the policies, and which of them are refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DatasetError
from graph_server.ingest.edge_weights import checked_weights
from graph_server.ingest.raw_graph import EdgeWeights, RawGraph
from tests.examples import examples
from tests.graph_server.datasets.folders import applied, raw_graph

FILE = Path("edges.csv")


def weighted(*edges: tuple[int, int, float]) -> RawGraph:
    ends = np.array([edge[:2] for edge in edges], np.int64).reshape(-1, 2)
    values = np.array([edge[2] for edge in edges], np.float32)
    return raw_graph(sources=ends[:, 0], targets=ends[:, 1], weights=EdgeWeights(values))


def edges_of(dataset) -> list[tuple[int, int, float]]:
    return list(zip(dataset.sources.tolist(), dataset.targets.tolist(), dataset.weights.tolist(), strict=True))


def test_weights_stay_with_their_edges():
    edges = ((2, 3, 0.5), (0, 1, 2.0), (2, 3, 4.0))
    dataset = applied(weighted(*edges), directed=True)
    assert edges_of(dataset) == list(edges)
    assert dataset.report["edge_weights"] == (0.5, 4.0)
    assert "edges have weights from 0.5 to 4" in dataset.report["notes"]


def test_of_equal_edges_the_first_weight_is_kept_and_the_others_are_counted():
    dataset = applied(weighted((2, 3, 0.5), (2, 3, 4), (0, 1, 2), (0, 1, 2)), directed=True, dedup=True)
    assert edges_of(dataset) == [(2, 3, 0.5), (0, 1, 2)]
    assert dataset.report["duplicate_edges_of_another_weight"] == 1
    assert "1 of them had another weight than the first, which is kept" in dataset.report["notes"]


def test_an_edge_that_is_added_weighs_what_the_edge_it_answers_weighs():
    """0 -> 1 three times and back once: the first is answered by what is there, the two others are."""
    raw = weighted((0, 1, 1), (1, 0, 7), (0, 1, 2), (3, 3, 9), (0, 1, 3), (2, 0, 5))
    dataset = applied(raw, directed=False)
    assert edges_of(dataset)[6:] == [(0, 2, 5), (1, 0, 2), (1, 0, 3)]
    assert dataset.report["reverse_edges_added"] == 3


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 9)), min_size=1, max_size=12))
def test_every_pair_has_the_weights_of_one_direction_in_the_other(edges):
    """The k-th edge one way is in the file, or bears the weight of the k-th edge the other way."""
    dataset = applied(weighted(*edges), directed=False)
    ways: dict[tuple[int, int], list[float]] = {}
    for source, target, weight in edges_of(dataset):
        ways.setdefault((source, target), []).append(weight)
    given_ways: dict[tuple[int, int], list[int]] = {}
    for source, target, weight in edges:
        given_ways.setdefault((source, target), []).append(weight)
    for (source, target), weights in ways.items():
        there = given_ways.get((source, target), [])
        assert weights == there + given_ways.get((target, source), [])[len(there) :]


def test_the_fingerprint_knows_weights_and_is_the_old_one_without():
    plain, one, other = (
        applied(raw, directed=True).fingerprint
        for raw in (replace(weighted((0, 1, 1)), weights=None), weighted((0, 1, 1)), weighted((0, 1, 2)))
    )
    assert len({plain, one, other}) == 3
    # Changed only together with `fingerprint.VERSION`: caches of graphs without weights stay good.
    assert plain == applied(replace(weighted((0, 1, 5)), weights=None), directed=True).fingerprint


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39, 1e-39, -1e-39])
def test_what_float32_does_not_hold_is_refused_with_its_rows(bad):
    values, lines = np.array([1, bad, 2, bad], np.float64), np.array([2, 3, 5, 8])
    with pytest.raises(DatasetError) as caught:
        checked_weights(values, FILE, lines=lines, unit="line")
    assert caught.value.what.startswith("edges.csv: line 3, 8: 2 of 4 edges have a weight")
    assert "dataset.edge_weight" in caught.value.fix


def test_zero_passes_and_negative_ones_are_remembered():
    found = checked_weights(np.array([0, 1.5, -2, -3]), FILE)
    assert found.values.tolist() == [0, 1.5, -2, -3]
    assert found.values.dtype == np.float32
    assert str(found.negative) == "edges.csv: edge 2, 3: 2 negative weights, the first -2"
    assert checked_weights(np.array([0, 1]), FILE).negative == ""


def test_negative_weights_that_no_policy_left_are_not_reported():
    edges, negative = weighted((0, 1, 1), (0, 1, -1)), "edge 1: 1 negative"
    raw = replace(edges, weights=edges.weights._replace(negative=negative))
    assert "negative_weights" not in applied(raw, directed=True, dedup=True).report
    assert applied(raw, directed=True).report["negative_weights"] == negative


def test_weights_that_a_format_does_not_have_are_refused():
    with pytest.raises(DatasetError, match="edge_weight: w, but small holds no weights"):
        applied(raw_graph(), edge_weight="w")

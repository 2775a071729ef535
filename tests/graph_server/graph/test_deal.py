"""Neighbours lie together, work balances, nobody stays without an interval who need not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_server.graph.csr import build
from graph_server.graph.deal import deal, interval_edges
from tests.examples import examples
from tests.graph_server.graph.graphs import Graph, graph_of, graphs


def none_between(num_intervals: int) -> np.ndarray:
    return np.zeros((num_intervals, num_intervals), np.int64)


@given(graph=graphs(), ends=st.lists(st.integers(0, 12), max_size=6))
@settings(max_examples=examples(60))
def test_interval_edges_count_every_edge(graph: Graph, ends: list[int]):
    bounds = np.array([0, *sorted(min(end, graph.num_nodes) for end in ends), graph.num_nodes])
    csr = build(graph.edges)
    interval_of = np.searchsorted(bounds, np.arange(graph.num_nodes), side="right") - 1
    expected = none_between(len(bounds) - 1)
    for source, target in graph.pairs():
        expected[interval_of[target], interval_of[source]] += 1
    assert np.array_equal(interval_edges(csr.indptr, csr.indices, bounds), expected)


def test_interval_edges_of_a_directed_pair():
    csr = build(graph_of([(0, 2), (1, 2), (2, 2)], 3).edges)
    assert interval_edges(csr.indptr, csr.indices, np.array([0, 2, 2, 3])).tolist() == [[0, 0, 0], [0, 0, 0], [2, 0, 1]]


def test_intervals_that_read_each_other_lie_together():
    edges = np.ones((8, 8), np.int64)
    for first in range(4):
        edges[first, first + 4] = edges[first + 4, first] = 50
    owners = deal(np.full(8, 100), edges, 4)
    assert owners[:4].tolist() == owners[4:].tolist()
    assert sorted(owners[:4].tolist()) == [0, 1, 2, 3]


def test_work_balances():
    weights = np.random.default_rng(0).integers(50, 150, 400)
    loads = np.bincount(deal(weights, np.ones((400, 400), np.int64), 7), weights=weights)
    assert loads.max() <= 1.05 * loads.mean()


@given(weights=st.lists(st.integers(0, 9), min_size=1, max_size=12), servers=st.integers(1, 9), seed=st.integers(0, 9))
@settings(max_examples=examples(200))
def test_everybody_gets_an_interval_if_there_are_enough(weights: list[int], servers: int, seed: int):
    edges = np.random.default_rng(seed).integers(0, 5, (len(weights), len(weights)))
    owners = deal(np.array(weights), edges, servers)
    assert owners.dtype == np.int32
    assert owners.tolist() == deal(np.array(weights), edges, servers).tolist()
    assert set(owners.tolist()) <= set(range(servers))
    full = owners[np.array(weights) > 0]
    assert len(set(full.tolist())) == min(len(full), servers)
    assert len(set(owners.tolist())) == min(len(weights), servers)


@pytest.mark.parametrize("servers", [1, 3])
def test_only_empty_intervals(servers: int):
    assert len(deal(np.zeros(4, np.int64), none_between(4), servers)) == 4

"""A cut is a permutation with bounds; the same arguments give the same one, and its hash says which."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import SpecError
from graph_server.graph.csr import build
from graph_server.graph.cut import METHODS, Cut, make_cut, num_intervals_auto, splitmix64
from tests.examples import examples
from tests.graph_server.graph.graphs import Graph, graph_of, graphs, two_blocks

PURE = [method for method in METHODS if method != "metis"]


def share_cut(graph: Graph, cut: Cut) -> float:
    """The share of edges between two intervals."""
    interval_of = np.searchsorted(cut.bounds, cut.rank, side="right")
    return float((interval_of[graph.sources] != interval_of[graph.targets]).mean())


@given(graph=graphs(), num_intervals=st.integers(1, 20), method=st.sampled_from(PURE), seed=st.integers(0, 3))
@settings(max_examples=examples(60))
def test_a_cut_is_a_permutation_in_runs(graph: Graph, num_intervals: int, method: str, seed: int):
    cut = make_cut(graph.edges, num_intervals, method=method, seed=seed)
    assert sorted(cut.order.tolist()) == list(range(graph.num_nodes))
    assert cut.order[cut.rank].tolist() == list(range(graph.num_nodes))
    assert cut.num_intervals == num_intervals
    assert cut.bounds[0] == 0
    assert cut.bounds[-1] == graph.num_nodes
    for first, last in zip(cut.bounds[:-1], cut.bounds[1:], strict=True):
        assert (np.diff(cut.order[first:last]) > 0).all()
    assert make_cut(graph.edges, num_intervals, method=method, seed=seed).sha256 == cut.sha256


def test_the_stream_finds_planted_blocks():
    graph = two_blocks(2000, inside=20_000, across=1_000)
    stream, hashed = (make_cut(graph.edges, 2, method=method) for method in ("stream", "hash"))
    assert share_cut(graph, stream) < 0.06
    assert 0.45 < share_cut(graph, hashed) < 0.55


@pytest.mark.parametrize("num_intervals", [2, 7, 64])
def test_the_stream_balances_edges(num_intervals: int):
    graph = two_blocks(2000, inside=20_000, across=1_000)
    cut = make_cut(graph.edges, num_intervals)
    degrees = np.diff(build(graph.edges).indptr)
    loads = np.add.reduceat(degrees[cut.order] + 1, cut.bounds[:-1])
    assert loads.max() <= 1.05 * loads.mean() + degrees.max() + 1


def test_fennel_finds_planted_blocks_and_balances():
    graph = two_blocks(2000, inside=20_000, across=1_000)
    cut = make_cut(graph.edges, 2, method="fennel")
    assert share_cut(graph, cut) < 0.06
    assert np.diff(cut.bounds).max() <= 1.1 * 1000


def test_train_vertices_are_balanced_on_demand():
    """All of them lie in one of two blocks: a cut that follows the blocks leaves the other without."""
    graph = two_blocks(2000, inside=20_000, across=1_000)
    followed = make_cut(graph.edges, 2)
    train = followed.rank < followed.bounds[1]
    counts = {}
    for method in ("stream", "balanced"):
        cut = make_cut(graph.edges, 2, method=method, train=train)
        counts[method] = np.bincount(np.searchsorted(cut.bounds, cut.rank[train], side="right") - 1, minlength=2)
    assert counts["stream"].max() > 0.95 * train.sum()
    assert counts["balanced"].max() <= 1.06 * train.sum() / 2


def test_the_stream_sees_both_directions_of_a_directed_graph():
    graph = two_blocks(400, inside=4_000, across=200)
    half = graph.sources < graph.targets
    directed = Graph(graph.sources[half], graph.targets[half], graph.num_nodes)
    assert share_cut(directed, make_cut(directed.edges, 2)) < 0.1


def test_the_seed_decides_and_is_not_in_the_hash():
    graph = two_blocks(200, inside=800, across=100)
    first, second = (make_cut(graph.edges, 4, seed=seed) for seed in (0, 1))
    assert first.sha256 != second.sha256
    assert Cut("range", 9, first.order, first.bounds).sha256 == first.sha256


def test_the_hash_differs_with_the_order_and_with_the_bounds():
    order, bounds = np.arange(4), np.array([0, 2, 4])
    hashes = {
        Cut("range", 0, order, bounds).sha256,
        Cut("range", 0, order[::-1].copy(), bounds).sha256,
        Cut("range", 0, order, np.array([0, 3, 4])).sha256,
        Cut("range", 0, order, np.array([0, 2, 4, 4])).sha256,
    }
    assert len(hashes) == 4


def test_the_hash_of_a_known_cut_stays():
    cut = Cut("range", 0, np.array([2, 0, 1]), np.array([0, 1, 3]))
    assert cut.sha256 == "2f9e9e60b34bb016d3603d1e94ebecea110cdc81e2807a5fc314e2e36eddfeb7"


def test_the_stream_cut_of_a_known_graph_stays():
    """A ring with chords: the same cut on every CPU and with every version of NumPy and numba, or caches go stale."""
    ring = [(vertex, (vertex + step) % 60) for vertex in range(60) for step in (1, 7)]
    cut = make_cut(graph_of(ring, 60, directed=False).edges, 5)
    assert cut.sha256 == "6ec0f99a6ea2b4177602d2d2bbbf00a0ec273e6939a96746ec8bcb1fe34de77b"


def test_range_balances_edges_in_runs_of_original_ids():
    hub = graph_of([(0, target) for target in range(1, 10)], 10, directed=False)
    cut = make_cut(hub.edges, 2, method="range")
    assert cut.order.tolist() == list(range(10))
    assert cut.bounds.tolist() == [0, 3, 10]


def test_splitmix64_is_the_published_one():
    assert splitmix64(np.array([1234567], np.uint64)).tolist() == [6457827717110365317]


def test_a_hub_heavier_than_any_interval_has_its_place():
    hub = graph_of([(0, target) for target in range(1, 50)], 50, directed=False)
    cut = make_cut(hub.edges, 5)
    assert (np.diff(cut.bounds) > 0).all()


def test_no_edges_are_spread_evenly():
    graph = graph_of([], 12)
    assert np.diff(make_cut(graph.edges, 4).bounds).tolist() == [3, 3, 3, 3]


def test_intervals_without_vertices_are_legal():
    graph = graph_of([(0, 1)], 2)
    for method in METHODS:
        assert make_cut(graph.edges, 40, method=method).num_intervals == 40


@pytest.mark.parametrize("max_rows", [25, 26, 40])
def test_the_stream_keeps_to_the_largest_interval(max_rows: int):
    graph = two_blocks(100, inside=300, across=10)
    heavy = Graph(
        np.concatenate([graph.sources, np.zeros(400, int)]), np.concatenate([graph.targets, np.arange(400) % 20]), 100
    )
    cut = make_cut(heavy.edges, 4, max_rows_per_interval=max_rows)
    assert np.diff(cut.bounds).max() <= max_rows


def test_intervals_too_large_are_refused_with_the_number_needed():
    graph = graph_of([], 100)
    with pytest.raises(SpecError, match="an interval of 50 vertices, where 30 are the most that fit") as caught:
        make_cut(graph.edges, 2, max_rows_per_interval=30)
    assert caught.value.fix == "set cut.num_intervals to at least 4"
    hub = graph_of([(0, 1)] * 60, 10)
    with pytest.raises(SpecError, match="where 5 are the most"):
        make_cut(hub.edges, 2, method="range", max_rows_per_interval=5)


def test_an_unknown_method_is_refused():
    with pytest.raises(SpecError, match="cut.method = 'louvain'") as caught:
        make_cut(graph_of([], 3).edges, 2, method="louvain")
    assert "stream, balanced, fennel, metis, range, hash" in caught.value.fix


def test_no_interval_is_refused():
    with pytest.raises(SpecError, match="cut.num_intervals = 0"):
        make_cut(graph_of([], 3).edges, 0)


@pytest.mark.parametrize(
    ("nodes", "edges", "floats", "expected"),
    [
        (2708, 10_556, 1433, 2),  # Cora: 15.5 MB, but too few edges for more than two
        (2708, 49_999, 10**9, 2),
        (499, 10_000, 1000, 1),
        (500, 10_000, 1000, 2),  # exactly 2 MB
        (19_717, 88_648, 500, 6),  # PubMed: 39.4 MB, and an even number
        (232_965, 115_000_000, 602, 71),
        (1000, 50_000, 1, 1),
        (20_000, 400_000, 64, 2),  # 5.1 MB
        (4000, 50_000, 1000, 2),  # exactly 16 MB
        (4001, 50_000, 1000, 4),
        (28_001, 50_000, 1000, 16),
        (32_001, 50_000, 1000, 17),
        (10**8, 10**9, 602, 4096),
    ],
)
def test_automatic_numbers_of_intervals(nodes: int, edges: int, floats: int, expected: int):
    assert num_intervals_auto(nodes, edges, floats) == expected

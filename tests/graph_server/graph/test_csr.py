"""Rows are sorted, complete and keep duplicates; damage is found."""

import numpy as np
import pytest
from hypothesis import given, settings

from common.errors import DatasetError
from graph_server.graph.csr import (
    EdgeList,
    build,
    group,
    has_self_loop,
    in_degree,
    is_symmetric,
    row_of_entry,
    simple,
    symmetrised,
    transpose,
    validate,
    weight_sums,
)
from tests.examples import examples
from tests.graph_server.graph.graphs import Graph, graph_of, graphs


@given(graph=graphs())
@settings(max_examples=examples(60))
def test_rows_hold_every_edge_once_sources_ascending(graph: Graph):
    csr = build(graph.edges)
    validate(csr.indptr, csr.indices, graph.num_nodes)
    assert csr.indptr.dtype == np.int64
    listed = sorted((int(target), int(source)) for source, target in graph.pairs())
    rows = row_of_entry(csr.indptr).tolist()
    assert list(zip(rows, csr.indices.tolist(), strict=True)) == listed


@given(graph=graphs())
@settings(max_examples=examples(60))
def test_transposing_twice_changes_nothing(graph: Graph):
    csr = build(graph.edges)
    out = transpose(csr, graph.num_nodes)
    back = transpose(out, graph.num_nodes)
    assert np.array_equal(back.indptr, csr.indptr)
    assert np.array_equal(back.indices, csr.indices)
    assert out.indices.dtype == csr.indices.dtype
    assert is_symmetric(csr) == np.array_equal(out.indices, csr.indices) or graph.directed
    assert graph.directed or is_symmetric(csr)


@given(graph=graphs())
@settings(max_examples=examples(60))
def test_symmetrised_and_simple(graph: Graph):
    both = symmetrised(build(graph.edges))
    assert is_symmetric(both)
    bare = simple(both)
    edges = {(source, target) for source, target in graph.pairs() if source != target}
    expected = sorted(edges | {(target, source) for source, target in edges})
    assert list(zip(row_of_entry(bare.indptr).tolist(), bare.indices.tolist(), strict=True)) == expected


@pytest.mark.parametrize("num_columns", [8, 2**31, 2**40], ids=["int32", "int64", "wide"])
def test_pairs_are_sorted_whatever_the_width_of_ids(num_columns: int):
    largest = num_columns - 1
    csr = group(np.array([2, 0, 2, 2]), np.array([largest, 5, 3, largest]), 4, num_columns)
    assert csr.indptr.tolist() == [0, 1, 1, 4, 4]
    assert csr.indices.tolist() == [5, 3, largest, largest]


def test_degrees_count_duplicates_and_loops():
    graph = graph_of([(0, 1), (0, 1), (1, 1), (2, 2), (2, 0)], 4)
    csr = build(graph.edges)
    assert in_degree(csr).tolist() == [1, 3, 1, 0]
    assert has_self_loop(csr).tolist() == [False, True, True, False]


def test_loops_of_a_block_are_those_of_its_own_ids():
    assert has_self_loop(build(EdgeList(np.array([6, 5]), np.array([1, 0]), 7)), 5).tolist()[:2] == [True, True]


def test_duplicates_whose_reverse_stands_once_are_not_symmetric():
    assert not is_symmetric(build(graph_of([(0, 1), (0, 1), (1, 0)], 2).edges))


def weighted(*edges: tuple[int, int, float]) -> EdgeList:
    sources, targets, weights = (np.array(column) for column in zip(*edges, strict=True))
    return EdgeList(sources, targets, 4, weights.astype(np.float32))


def test_weights_stay_with_their_edges_and_repeats_in_order():
    csr = build(weighted((2, 0, 5), (1, 0, 9), (2, 0, 3), (1, 3, 7), (0, 2, 1)))
    assert (csr.indices.tolist(), csr.weights.tolist()) == ([1, 2, 2, 0, 1], [9, 5, 3, 1, 7])
    out = transpose(csr, 4)
    assert (out.indices.tolist(), out.weights.tolist()) == ([2, 0, 3, 0, 0], [1, 9, 7, 5, 3])
    assert weight_sums(csr).tolist() == [17, 0, 1, 7]


@pytest.mark.parametrize(("back", "same"), [(2, True), (3, False)])
def test_symmetric_are_weights_that_are_the_same_both_ways(back: float, same: bool):
    csr = build(weighted((0, 1, 2), (1, 0, back), (3, 3, 5)))
    assert is_symmetric(csr) is same
    assert is_symmetric(csr._replace(weights=None))
    assert symmetrised(csr).weights is None


@pytest.mark.parametrize("num_columns", [4, 2**31])
def test_any_number_of_columns_groups_weights_alike(num_columns: int):
    rows, columns = np.array([1, 0, 1, 1]), np.array([3, 2, 0, 3])
    csr = group(rows, columns, 2, num_columns, weights=np.arange(4, dtype=np.float32))
    assert (csr.indices.tolist(), csr.weights.tolist()) == ([2, 0, 3, 3], [1, 2, 0, 3])


@pytest.mark.parametrize(
    ("indptr", "indices", "text"),
    [
        ([0, 1], [0, 1], "row offsets do not cover the 2 entries"),
        ([0, 2, 1, 2], [0, 1], "row offsets do not cover the 2 entries"),
        ([1, 2], [0, 1], "row offsets do not cover the 2 entries"),
        ([], [], "row offsets do not cover the 0 entries"),
        ([0, 1, 2], [0, 3], "ids reach from 0 to 3, there are 3 vertices"),
        ([0, 1, 2], [-1, 0], "ids reach from -1 to 0"),
        ([0, 0, 3, 3], [0, 2, 1], "sources descend at entry 2"),
    ],
)
def test_damage_is_found(indptr: list[int], indices: list[int], text: str):
    with pytest.raises(DatasetError, match=text):
        validate(np.array(indptr, np.int64), np.array(indices, np.int64), 3)


def test_rows_may_begin_below_the_one_before():
    validate(np.array([0, 2, 2, 3, 3]), np.array([1, 2, 0]), 3)
    validate(np.array([0, 0]), np.array([], np.int64), 3)

"""`dedup` and `directed`: what they change, and what they count."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DatasetError
from tests.examples import examples
from tests.graph_server.datasets.folders import applied, raw_graph


def with_edges(*edges: tuple[int, int], **changes):
    return raw_graph(
        sources=np.array([source for source, _ in edges], dtype=np.int64),
        targets=np.array([target for _, target in edges], dtype=np.int64),
        **changes,
    )


def pairs(dataset) -> list[tuple[int, int]]:
    return list(zip(dataset.sources.tolist(), dataset.targets.tolist(), strict=True))


def test_lists_keep_duplicates_and_say_so():
    dataset = applied(with_edges((0, 1), (0, 1), (1, 0), (1, 0)))
    assert dataset.num_edges == 4
    assert dataset.report["duplicate_edges"] == 2
    assert "2 duplicate edges are kept and count twice; dataset.dedup: true removes them" in dataset.report["notes"]


def test_sets_lose_duplicates_and_say_so():
    dataset = applied(with_edges((0, 1), (0, 1), (1, 0), edges_are_a_set=True))
    assert pairs(dataset) == [(0, 1), (1, 0)]
    assert "1 duplicate edges removed" in dataset.report["notes"]


def test_dedup_is_the_users_word():
    edges = ((2, 3), (0, 1), (2, 3))
    assert pairs(applied(with_edges(*edges), dedup=True, directed=True)) == [(2, 3), (0, 1)]
    assert pairs(applied(with_edges(*edges, edges_are_a_set=True), dedup=False, directed=True)) == list(edges)


def test_auto_asks_when_some_edges_have_no_reverse():
    with pytest.raises(DatasetError) as error:
        applied(with_edges((0, 1), (1, 0), (1, 2), (3, 3)))
    assert "66.7% of them have their reverse" in error.value.what
    assert "dataset.directed: false" in error.value.fix


def test_auto_is_undirected_when_every_edge_has_its_reverse():
    assert not applied(raw_graph()).directed


def test_auto_believes_the_format():
    assert pairs(applied(with_edges((0, 1), undirected=True))) == [(0, 1), (1, 0)]
    assert applied(with_edges((0, 1), undirected=False)).directed


def test_true_takes_edges_as_they_stand():
    dataset = applied(with_edges((0, 1), (1, 2)), directed=True)
    assert dataset.directed
    assert pairs(dataset) == [(0, 1), (1, 2)]
    assert dataset.report["reverse_edges_added"] == 0


def test_self_loops_get_no_reverse():
    dataset = applied(with_edges((0, 0), (1, 2)), directed=False)
    assert pairs(dataset) == [(0, 0), (1, 2), (2, 1)]
    assert dataset.report["self_loops"] == 1
    assert dataset.report["isolated"] == 2


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=25),
    st.booleans(),
)
@settings(max_examples=examples(100))
def test_an_undirected_multigraph_is_its_own_transpose(edges: list[tuple[int, int]], dedup: bool):
    dataset = applied(with_edges(*edges), directed=False, dedup=dedup)
    made, given_edges = Counter(pairs(dataset)), Counter(set(edges) if dedup else edges)
    for (source, target), count in made.items():
        assert made[target, source] == count
        assert count == max(given_edges[source, target], given_edges[target, source])
    assert dataset.num_edges == sum(given_edges.values()) + dataset.report["reverse_edges_added"]


def test_degrees_are_counted():
    report = applied(with_edges((0, 1), (2, 1)), directed=True).report
    assert (report["zero_in_degree"], report["isolated"], report["largest_in_degree"]) == (3, 1, 2)

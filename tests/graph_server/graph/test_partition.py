"""The partitions of a graph are that graph: every edge once, in the same order, and each knows what the others hold."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DatasetError
from graph_server.graph.csr import Csr, EdgeList, build, has_self_loop, in_degree, transpose
from graph_server.graph.cut import Cut
from graph_server.graph.edges import Edges
from graph_server.graph.graph_folder import GraphFolder
from graph_server.graph.partition import Partition, deal_folder
from graph_server.graph.partition_book import PartitionBook
from tests.examples import examples
from tests.graph_server.graph.graphs import Graph, folder_of, graph_of, graphs, partitions, random_cut, two_blocks

SERVERS = [1, 2, 3, 5]
DIRECTIONS = ("in_edges", "out_edges")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("folders")


def relabelled(graph: Graph, cut: Cut) -> Csr:
    return build(EdgeList(cut.rank[graph.sources], cut.rank[graph.targets], graph.num_nodes))


def direction(partition: Partition, name: str) -> Edges:
    return partition.in_edges if name == "in_edges" else partition.out_edges


def check_rows(edges: Edges, own_ids: list[int], expected: Csr) -> None:
    """Every own row reads what the whole graph says it reads, in the same order."""
    for row, vertex in enumerate(own_ids):
        columns = edges.columns[edges.indptr[row] : edges.indptr[row + 1]]
        assert edges.table_ids[columns].tolist() == (
            expected.indices[expected.indptr[vertex] : expected.indptr[vertex + 1]].tolist()
        )


def check_ghosts(edges: Edges, own_ids: list[int], book: PartitionBook) -> None:
    """Ghosts are what is read and not owned, in blocks by the interval they live in."""
    read = set(edges.table_ids[edges.columns].tolist())
    assert edges.ghosts.tolist() == sorted(read - set(own_ids))
    assert edges.table_ids.tolist() == own_ids + edges.ghosts.tolist()
    covered = []
    for interval, block in edges.ghost_blocks.items():
        ids = edges.table_ids[block].tolist()
        assert ids
        assert set(ids) <= set(book.rows(interval))
        covered += ids
    assert covered == edges.ghosts.tolist()


def check_feeds(edges: Edges, rows: dict[int, slice], book: PartitionBook) -> None:
    for interval, place in rows.items():
        columns = edges.columns[edges.indptr[place.start] : edges.indptr[place.stop]]
        assert edges.feeds[interval] == tuple(sorted(set(book.interval_of(edges.table_ids[columns]).tolist())))


def check_sends(parts: list[Partition], name: str, book: PartitionBook) -> None:
    """What the owners send is what the readers wait for, block by block, and nothing besides."""
    sent = {
        (interval, peer): (book.bounds[interval] + positions).tolist()
        for part in parts
        for interval, peers in direction(part, name).sends.items()
        for peer, positions in peers.items()
    }
    expected = {
        (interval, part.server): direction(part, name).table_ids[block].tolist()
        for part in parts
        for interval, block in direction(part, name).ghost_blocks.items()
    }
    assert sent == expected


@given(graph=graphs(), num_intervals=st.integers(1, 9), num_servers=st.sampled_from(SERVERS))
@settings(max_examples=examples(60))
def test_partitions_are_the_graph(graph: Graph, num_intervals: int, num_servers: int, room: Path):
    cut = random_cut(graph, num_intervals)
    book, parts = partitions(folder_of(graph, cut, room), num_servers)
    whole = relabelled(graph, cut)
    reverse = transpose(whole, graph.num_nodes)
    degree, loops = in_degree(whole), has_self_loop(whole)
    owned: list[int] = []
    for part in parts:
        own_ids = [row for interval in part.own for row in book.rows(interval)]
        owned += own_ids
        for name, expected in zip(DIRECTIONS, (whole, reverse), strict=True):
            check_rows(direction(part, name), own_ids, expected)
            check_ghosts(direction(part, name), own_ids, book)
            check_feeds(direction(part, name), part.rows, book)
        ghosts = part.in_edges.ghosts
        assert part.in_degree.tolist() == degree[own_ids].tolist()
        assert part.has_self_loop.tolist() == loops[own_ids].tolist()
        assert part.ghost_in_degree.tolist() == degree[ghosts].tolist()
        assert part.ghost_has_self_loop.tolist() == loops[ghosts].tolist()
        assert part.ghost_features().tolist() == graph.features[cut.order[ghosts]].tolist()
        assert part.ids.tolist() == graph.node_ids[cut.order[own_ids]].tolist()
    assert sorted(owned) == list(range(graph.num_nodes))
    for name in DIRECTIONS:
        check_sends(parts, name, book)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("num_servers", SERVERS)
def test_a_graph_with_ghosts(num_servers: int, directed: bool, tmp_path: Path):
    graph = two_blocks(200, inside=600, across=60)
    if directed:
        half = graph.sources < graph.targets
        graph = Graph(graph.sources[half], graph.targets[half], 200)
    cut = random_cut(graph, 12)
    book, parts = partitions(folder_of(graph, cut, tmp_path), num_servers)
    for part in parts:
        assert len(part.own) >= 2
        assert (part.in_edges.num_ghosts > 0) == (num_servers > 1)
        assert (part.out_edges is part.in_edges) == (not directed)
        assert part.in_edges.columns.dtype == np.int32
    for name in DIRECTIONS:
        check_sends(parts, name, book)


def test_columns_keep_the_global_order_though_ghosts_stand_last(tmp_path: Path):
    graph = graph_of([(0, 2), (1, 2), (2, 2), (3, 2), (3, 2)], 4)
    cut = Cut("range", 0, np.arange(4), np.array([0, 1, 2, 3, 4]))
    book = PartitionBook(cut.bounds, np.array([1, 0, 0, 1], np.int32), 2)
    part = Partition.load(folder_of(graph, cut, tmp_path), book, 0)
    assert part.own == (1, 2)
    assert part.rows == {1: slice(0, 1), 2: slice(1, 2)}
    assert part.in_edges.table_ids.tolist() == [1, 2, 0, 3]
    assert part.in_edges.indptr.tolist() == [0, 0, 5]
    assert part.in_edges.columns.tolist() == [2, 0, 1, 3, 3]
    assert part.in_edges.ghost_blocks == {0: slice(2, 3), 3: slice(3, 4)}
    assert part.in_edges.feeds == {1: (), 2: (0, 1, 2, 3)}
    assert part.in_edges.sends == {1: {}, 2: {}}
    assert part.out_edges.ghosts.tolist() == []
    assert {
        interval: {peer: rows.tolist() for peer, rows in peers.items()}
        for interval, peers in part.out_edges.sends.items()
    } == {1: {}, 2: {1: [0]}}
    assert (part.in_degree.tolist(), part.has_self_loop.tolist()) == ([0, 5], [False, True])


def test_arrays_of_an_own_interval(tmp_path: Path):
    graph = graph_of([(0, 1)], 6)
    cut = random_cut(graph, 2)
    _, (part,) = partitions(folder_of(graph, cut, tmp_path), 1)
    for interval in part.own:
        rows = cut.order[cut.bounds[interval] : cut.bounds[interval + 1]]
        assert part.features(interval).tolist() == graph.features[rows].tolist()
        assert part.labels(interval).tolist() == graph.labels[rows].tolist()
        assert part.masks(interval).tolist() == graph.masks[rows].tolist()


def test_a_graph_server_without_intervals(tmp_path: Path):
    graph = graph_of([(0, 1)], 2, directed=True)
    _, parts = partitions(folder_of(graph, random_cut(graph, 1), tmp_path), 3)
    assert sorted(len(part.own) for part in parts) == [0, 0, 1]
    idle = next(part for part in parts if not part.own)
    assert (idle.num_own, idle.rows, idle.in_edges.indptr.tolist()) == (0, {}, [0])
    assert idle.ghost_features().shape == (0, 2)
    assert idle.ids.tolist() == []


def test_one_vertex_and_no_edges(tmp_path: Path):
    graph = graph_of([], 1, directed=False)
    _, (first, second) = partitions(folder_of(graph, random_cut(graph, 4), tmp_path), 2)
    assert first.num_own + second.num_own == 1
    assert first.in_edges.columns.tolist() == second.in_edges.columns.tolist() == []


def test_any_deal_of_the_same_folder_can_be_loaded(tmp_path: Path):
    graph = two_blocks(60, inside=120, across=20)
    folder = folder_of(graph, random_cut(graph, 6), tmp_path)
    book = PartitionBook(folder.bounds, np.array([1, 1, 0, 2, 0, 1], np.int32), 3)
    parts = [Partition.load(folder, book, server) for server in range(3)]
    for name in DIRECTIONS:
        check_sends(parts, name, book)


def test_the_deal_of_a_folder_is_always_the_same(tmp_path: Path):
    graph = two_blocks(60, inside=120, across=20)
    folder = folder_of(graph, random_cut(graph, 6), tmp_path)
    assert deal_folder(folder, 3).owners.tolist() == deal_folder(folder, 3).owners.tolist()
    assert set(deal_folder(folder, 3).owners.tolist()) == {0, 1, 2}


def test_damaged_edges_are_refused_before_they_are_used(tmp_path: Path):
    graph = graph_of([(0, 1), (1, 0)], 2)
    folder = folder_of(graph, random_cut(graph, 1), tmp_path)
    path = folder.path / "intervals/00000/sources.npy"
    np.save(path, np.array([1, 7], np.int32))
    book = deal_folder(folder, 1)
    with pytest.raises(DatasetError, match="ids reach from 1 to 7, there are 2 vertices"):
        Partition.load(GraphFolder.open(folder.path), book, 0)

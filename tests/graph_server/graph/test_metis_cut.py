"""METIS runs for real, in its own process, on graphs that make it crash in others."""

import sys
from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from graph_server.graph.csr import Csr, build, symmetrised
from graph_server.graph.cut import make_cut
from graph_server.graph.metis_cut import metis_clusters, run
from tests.graph_server.graph.graphs import Graph, graph_of, two_blocks


@pytest.fixture(scope="module")
def installed() -> None:
    pytest.importorskip("pymetis", reason="no wheel of pymetis here")


def structure(graph: Graph) -> Csr:
    return symmetrised(build(graph.edges))


@pytest.mark.usefixtures("installed")
def test_metis_finds_planted_blocks_among_duplicates_and_loops():
    graph = two_blocks(300, inside=2_000, across=40)
    doubled = Graph(
        np.concatenate([graph.sources, graph.sources, np.arange(300)]),
        np.concatenate([graph.targets, graph.targets, np.arange(300)]),
        300,
    )
    cut = make_cut(doubled.edges, 2, method="metis")
    odd = [(part % 2).mean() for part in np.split(cut.order, cut.bounds[1:-1])]
    assert min(odd) < 0.05
    assert max(odd) > 0.95
    assert cut.sha256 == make_cut(doubled.edges, 2, method="metis").sha256


@pytest.mark.usefixtures("installed")
def test_metis_takes_a_directed_graph():
    graph = two_blocks(300, inside=2_000, across=40)
    half = graph.sources < graph.targets
    cut = make_cut(Graph(graph.sources[half], graph.targets[half], 300).edges, 12, method="metis")
    assert np.diff(cut.bounds).max() < 2 * 300 / 12


@pytest.mark.parametrize(
    ("num_clusters", "expected"), [(1, [0, 0, 0, 0]), (4, [0, 1, 2, 3]), (9, [0, 1, 2, 3])], ids=["1", "V", "more"]
)
def test_one_cluster_and_one_per_vertex_need_no_metis(
    num_clusters: int, expected: list[int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    graph = graph_of([(0, 1), (1, 2), (2, 3)], 4, directed=False)
    assert metis_clusters(structure(graph), num_clusters, seed=0).tolist() == expected


def test_without_edges_there_is_nothing_to_cut(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    assert metis_clusters(structure(graph_of([(2, 2)], 5)), 2, seed=0).tolist() == [0, 1, 0, 1, 0]


def test_no_pymetis_is_an_error_never_another_cut(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(DatasetError, match="no wheel of it for Linux arm64") as caught:
        make_cut(two_blocks(20, inside=40, across=4).edges, 2, method="metis")
    assert "pymetis is not installed" in caught.value.what
    assert "cut.method = 'stream'" in caught.value.fix


def test_a_crash_is_told_in_the_words_of_the_process(tmp_path: Path):
    with pytest.raises(DatasetError, match="METIS could not cut this graph") as caught:
        run(tmp_path, 2, 0, timeout_seconds=60)
    assert caught.value.why.startswith("exit status 1: ")
    assert "Error" in caught.value.why


@pytest.mark.usefixtures("installed")
def test_a_metis_that_hangs_is_ended():
    with pytest.raises(DatasetError, match=r"it did not end within 0.01 s"):
        metis_clusters(structure(two_blocks(20, inside=40, across=4)), 2, seed=0, timeout_seconds=0.01)

"""Generated graphs: the same from the same seed, shaped as promised, and read by the edge-list reader."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import graphs
from benchmarks.graphs import RUNS, Graph, Recipe, draw, write
from common.job_spec import DatasetSpec
from graph_server.ingest.dataset import prepare

KINDS = ("blocks", "local", "random")
BLOCKS = Recipe("blocks", 5_000, 50_000)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_draws_the_same_graph(kind):
    recipe = replace(BLOCKS, kind=kind)
    one, again, other = draw(recipe), draw(recipe), draw(replace(recipe, seed=1))
    assert all(np.array_equal(getattr(one, name), getattr(again, name)) for name in vars(one))
    assert not np.array_equal(one.edges, other.edges)
    assert not np.array_equal(one.features, other.features)


@pytest.mark.parametrize("kind", KINDS)
def test_edges_go_both_ways_without_loops_and_repeats(kind):
    graph = draw(replace(BLOCKS, kind=kind))
    sources, targets = graph.edges
    each = np.unique(sources * 5_000 + targets)
    assert len(each) == len(sources) > 0.8 * 2 * 50_000
    assert np.array_equal(sorted_pairs(targets, sources), each)
    assert (sources != targets).all()


def test_masks_take_their_shares_and_no_vertex_twice():
    masks = draw(BLOCKS).masks
    assert masks.sum(axis=0).tolist() == [500, 1000, 3500]
    assert (masks.sum(axis=1) == 1).all()


def test_a_model_needs_the_graph():
    """By the nearest class mean: a vertex's own features say little, with its neighbours' they say much."""
    graph = draw(replace(BLOCKS, num_vertices=20_000, num_edges=200_000))
    alone, together = accuracy(graph, graph.features), accuracy(graph, neighbour_means(graph))
    assert 0.2 < alone < 0.5
    assert alone + 0.2 < together < 0.95


def accuracy(graph: Graph, features: np.ndarray) -> float:
    train, _, test = graph.masks.T
    means = np.stack([features[train & (graph.labels == c)].mean(axis=0) for c in range(10)])
    distances = (means**2).sum(axis=1) - 2 * features[test] @ means.T
    return float((distances.argmin(axis=1) == graph.labels[test]).mean())


def neighbour_means(graph: Graph) -> np.ndarray:
    sources, targets = graph.edges
    sums = graph.features.copy()
    np.add.at(sums, targets, graph.features[sources])
    return sums / (1 + np.bincount(targets, minlength=len(sums)))[:, None]


def test_degrees_of_blocks_differ_widely():
    blocks, even = (np.bincount(draw(replace(BLOCKS, kind=kind)).edges[0]) for kind in ("blocks", "random"))
    assert blocks.max() > 5 * blocks.mean()
    assert even.max() < 3 * even.mean()


def test_edges_of_a_local_graph_lead_no_farther_than_the_next_run():
    recipe = Recipe("local", 20_480, 100_000, inside=0.9)
    run = draw(recipe).edges * RUNS // recipe.num_vertices
    apart = (run[0] - run[1]) % RUNS
    assert set(np.unique(apart)) == {0, 1, RUNS - 1}
    assert (apart == 0).mean() == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_the_edge_list_reader_takes_the_folder(kind, tmp_path: Path):
    recipe = replace(BLOCKS, kind=kind)
    graph, read = draw(recipe), prepare(DatasetSpec(path=str(write(recipe, tmp_path))), tmp_path)
    assert (read.num_nodes, read.num_classes, read.directed) == (5_000, 10, False)
    assert np.array_equal(
        np.sort(read.sources * 5_000 + read.targets), np.sort(graph.edges[0] * 5_000 + graph.edges[1])
    )
    assert np.array_equal(read.features, graph.features)
    assert np.array_equal(read.labels, graph.labels)


def sorted_pairs(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return np.sort(sources * 5_000 + targets)


def test_a_graph_is_written_once(tmp_path: Path):
    folder = write(BLOCKS, tmp_path)
    written = (folder / "edges.npy").stat().st_mtime_ns
    assert write(BLOCKS, tmp_path) == folder
    assert (folder / "edges.npy").stat().st_mtime_ns == written
    assert write(replace(BLOCKS, seed=1), tmp_path) != folder
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_graph_is_drawn_in_pieces(kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(graphs, "PIECE", 7_001)
    recipe = replace(BLOCKS, kind=kind)
    graph, folder = draw(recipe), write(recipe, tmp_path)
    each = sorted_pairs(*graph.edges)
    assert len(np.unique(each)) == len(each) > 0.8 * 2 * 50_000
    for name, array in vars(graph).items():
        assert np.array_equal(np.load(folder / f"{name}.npy"), array)

"""Edges sorted on disk are what the policies and the rows in memory say, in however many runs."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.graph.csr import EdgeList, build, is_symmetric, symmetrised
from graph_server.ingest.edge_policies import apply_edge_policies, is_directed, wants_dedup
from graph_server.ingest.raw_graph import EdgeWeights
from graph_server.large import sorted_edges
from graph_server.large.pair_file import PairFile
from graph_server.large.sorted_edges import SortedEdges, sort_edges
from tests.graph_server.datasets.folders import raw_graph

LIMIT = 2_000_000_000


def sorted_on_disk(raw, options: DatasetSpec, folder: Path, *, memory_bytes: int = LIMIT) -> SortedEdges:
    with PairFile(folder / "pairs", weighted=raw.weights is not None) as pairs:
        for start in range(0, len(raw.sources), 7):
            rows = slice(start, start + 7)
            pairs.add(raw.sources[rows], raw.targets[rows], raw.weights and raw.weights.values[rows])
    return sort_edges(
        pairs.batches,
        raw.num_nodes,
        decide=lambda reciprocity: is_directed(raw, options, reciprocity),
        dedup=wants_dedup(options, raw),
        folder=folder,
        memory_bytes=memory_bytes,
    )


def random_graph(seed: int, num_nodes: int = 40, num_edges: int = 300, **changes):
    """With repeats, loops, and some edges that have their reverse."""
    sources, targets = np.random.default_rng(seed).integers(0, num_nodes - 1, (2, num_edges))
    sources[-60:], targets[-60:] = targets[:60], sources[:60]
    nodes = np.arange(num_nodes)
    return raw_graph(sources=sources, targets=targets, node_ids=nodes, features=None, labels=nodes % 2, **changes)


def random_weights(seed: int, num_edges: int = 300) -> EdgeWeights:
    return EdgeWeights(np.random.default_rng(seed).integers(1, 5, num_edges).astype(np.float32) / 3)


@pytest.fixture(params=[1, 5, 39], ids=lambda runs: f"{runs} runs")
def runs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if an edge took so much of the memory that it takes so many runs."""
    monkeypatch.setattr(sorted_edges, "ENTRY_BYTES", LIMIT // 300 * request.param)
    monkeypatch.setattr(sorted_edges, "BESIDE_BYTES", 0)


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("dedup", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_as_in_memory(tmp_path: Path, seed: int, dedup: bool, directed: bool):
    raw, options = random_graph(seed), DatasetSpec(path="small", dedup=dedup, directed=directed)
    found, expected = sorted_on_disk(raw, options, tmp_path), apply_edge_policies(raw, options)
    rows = build(EdgeList(expected.sources, expected.targets, raw.num_nodes))
    assert np.array_equal(found.in_edges.indptr, rows.indptr)
    assert np.array_equal(found.in_edges.indices, rows.indices)
    structure = symmetrised(rows)
    assert np.array_equal(found.structure.indptr, structure.indptr)
    assert np.array_equal(found.structure.indices, structure.indices)
    assert found.symmetric == is_symmetric(rows)
    assert found.out_degree.tolist() == np.bincount(expected.sources, minlength=raw.num_nodes).tolist()
    for name in ("edges_raw", "duplicate_edges", "duplicate_edges_removed", "reverse_edges_added", "edges"):
        assert found.counts[name] == expected.counts[name], name


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("dedup", [True, False])
def test_weights_stay_with_their_edges_as_in_memory(tmp_path: Path, dedup: bool, directed: bool):
    raw, options = random_graph(3, weights=random_weights(3)), DatasetSpec(path="small", dedup=dedup, directed=directed)
    found, expected = sorted_on_disk(raw, options, tmp_path), apply_edge_policies(raw, options)
    rows = build(EdgeList(expected.sources, expected.targets, raw.num_nodes, expected.weights))
    assert np.array_equal(found.in_edges.indices, rows.indices)
    assert found.in_edges.weights is not None
    assert found.in_edges.weights.tobytes() == rows.weights.tobytes()
    assert found.in_edges.weights.dtype == rows.weights.dtype
    assert found.structure.weights is None
    assert found.symmetric == is_symmetric(rows) is False
    counted = "duplicate_edges_of_another_weight"
    assert found.counts.get(counted) == expected.counts.get(counted)
    assert (found.counts.get(counted) or 0) > 0 or not dedup


@pytest.mark.parametrize(("last", "symmetric"), [(2.0, True), (3.0, False)])
@pytest.mark.parametrize("directed", [True, False])
def test_edges_whose_reverse_has_another_weight_are_not_symmetric(
    tmp_path: Path, directed: bool, last: float, symmetric: bool
):
    ends = {"sources": np.array([0, 1, 0, 1]), "targets": np.array([1, 0, 1, 0])}
    raw = raw_graph(**ends, weights=EdgeWeights(np.array([1, 1, 2, last], np.float32)))
    found = sorted_on_disk(raw, DatasetSpec(path="small", directed=directed), tmp_path)
    assert found.symmetric == symmetric
    assert found.structure.indices.tolist() == [1, 1, 0, 0]


@pytest.mark.usefixtures("runs")
def test_the_direction_is_asked_for_with_the_same_reciprocity(tmp_path: Path):
    raw, options = random_graph(0), DatasetSpec(path="small")
    words = []
    for work in (lambda: sorted_on_disk(raw, options, tmp_path), lambda: apply_edge_policies(raw, options)):
        with pytest.raises(DatasetError) as error:
            work()
        words.append(str(error.value))
    assert words[0] == words[1]


def test_a_directed_list_that_is_symmetric_is_seen_to_be(tmp_path: Path):
    raw = raw_graph()
    found = sorted_on_disk(raw, DatasetSpec(path="small", directed=True), tmp_path)
    assert (found.directed, found.symmetric) == (True, True)
    assert found.structure is found.in_edges


def test_no_edges(tmp_path: Path):
    nothing = np.zeros(0, np.int64)
    found = sorted_on_disk(raw_graph(sources=nothing, targets=nothing), DatasetSpec(path="small"), tmp_path)
    assert found.in_edges.indptr.tolist() == [0] * 5
    assert found.symmetric


def test_too_little_memory_is_refused_with_what_it_takes(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"a memory limit of 0\.10 GB for 40 vertices") as error:
        sorted_on_disk(random_graph(0), DatasetSpec(path="small", directed=True), tmp_path, memory_bytes=10**8)
    assert error.value.fix == "set --memory-limit to 0.4GB at least"

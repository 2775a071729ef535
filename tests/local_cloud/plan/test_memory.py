"""A forecast of memory counts what a graph server holds, to the byte where it can; what does not fit is refused."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from common import plugins
from common.errors import SpecError
from common.passes import train
from common.saga.cost import once_bytes, stored_bytes
from graph_server.graph.edges import Edges
from graph_server.graph.partition import Partition, deal_folder
from graph_server.graph.tensor_store import TensorStore
from graph_server.stages.held import Held
from graph_server.stages.load import load_constants
from local_cloud.plan.memory import SORTED, count_memory, edge_bytes, server_shares
from local_cloud.plan.memory_check import memory_here, refuse_what_does_not_fit
from local_cloud.prepare import PreparedJob
from local_cloud.training import RunOptions, train_job
from tests.graph_server.graph.graphs import folder_of, graph_of, random_cut
from tests.local_cloud.jobs import MY_GRAPH, ROOT, Recorder, load_my_graph
from tests.local_cloud.test_payload import prepared

MODELS = plugins.names("common.models")
DIRECTIONS = pytest.mark.parametrize("directed", ["true", "false"])


def partitions(job: PreparedJob) -> list[Partition]:
    book = deal_folder(job.folder, 3)
    return [Partition.load(job.folder, book, server) for server in range(3)]


@DIRECTIONS
@pytest.mark.parametrize("model", MODELS)
def test_tensors_are_those_of_a_store(model: str, directed: str, cache_dir: Path):
    job = prepared(MY_GRAPH, {"model.name": model, "dataset.directed": directed}, cache_dir)
    for share, partition in zip(server_shares(job.folder, 3), partitions(job), strict=True):
        rows = {"num_own": share.vertices, "num_ghosts": share.ghosts}
        stored = stored_bytes(job.programs, **rows, num_backward_ghosts=share.backward_ghosts)
        assert stored == TensorStore(job.programs, partition).nbytes


@pytest.mark.parametrize("hoist", ["true", "false"])
@pytest.mark.parametrize("model", MODELS)
def test_what_is_read_once_is_freed(model: str, hoist: str, cache_dir: Path):
    job = prepared(MY_GRAPH, {"model.name": model, "dataset.directed": "false", "training.hoist": hoist}, cache_dir)
    partition = partitions(job)[0]
    held = Held(job.programs, partition, seed=0)
    before = held.store.nbytes
    load_constants(held)
    freed = once_bytes(job.programs, num_own=partition.num_own, num_ghosts=partition.in_edges.num_ghosts)
    assert before - held.store.nbytes == freed
    assert held.store.array(train(1), job.programs.train.steps[0].reads[0]).any()


@DIRECTIONS
def test_edges_take_no_more_than_is_said(directed: str, cache_dir: Path):
    job = prepared("cora", {"dataset.directed": directed}, cache_dir)
    for share, partition in zip(server_shares(job.folder, 3), partitions(job), strict=True):
        held = sum(bytes_of(edges) for edges in {id(e): e for e in (partition.in_edges, partition.out_edges)}.values())
        assert held <= edge_bytes(job.folder, share) <= 1.35 * held


def bytes_of(edges: Edges) -> int:
    sends = sum(rows.nbytes for peers in edges.sends.values() for rows in peers.values())
    return edges.indptr.nbytes + edges.columns.nbytes + edges.ghosts.nbytes + edges.table_ids.nbytes + sends


@pytest.mark.parametrize("directed", [True, False])
def test_reading_edges_takes_no_more_than_is_said(directed: bool, tmp_path: Path):
    random = np.random.default_rng(0)
    pairs = [tuple(pair) for pair in random.integers(0, 2000, (60_000, 2)).tolist()]
    graph = graph_of(pairs, 2000, directed=directed)
    folder = folder_of(graph, random_cut(graph, 4), tmp_path)
    (whole,), book = server_shares(folder, 1), deal_folder(folder, 1)
    tracemalloc.start()
    try:
        Partition.load(folder, book, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = edge_bytes(folder, whole) * (1 + (SORTED if directed else 1))
    assert peak < said + 200_000
    assert said < 1.6 * peak


def test_parts_add_up(cache_dir: Path):
    job = prepared("cora", {"cluster.num_parameter_servers": "2"}, cache_dir)
    memory = count_memory(job, threads=4, num_functions=5)
    servers = sum(server.total for server in memory.graph_servers)
    assert memory.here == servers + 2 * memory.parameter_server + memory.launcher + memory.functions
    assert memory.functions > 5 * 50_000_000
    assert memory.most < memory.here


def test_one_graph_server_holds_all_and_more_hold_ghosts(cache_dir: Path):
    job = prepared("cora", {}, cache_dir)
    (one,), three = server_shares(job.folder, 1), server_shares(job.folder, 3)
    assert (one.vertices, one.edges) == (job.folder.manifest.num_nodes, job.folder.manifest.num_edges)
    assert (one.vertices, one.edges) == (sum(s.vertices for s in three), sum(s.edges for s in three))
    assert one.ghosts == 0 < sum(s.ghosts for s in three)


def test_functions_hold_what_a_graph_server_need_not(cache_dir: Path):
    here, away = (prepared("cora", {"backend.name": name}, cache_dir) for name in ("local_cpu", "lambda"))
    assert memory_here(here).functions == 0 < memory_here(away).functions
    assert memory_here(here).parts["tasks"] > memory_here(away).parts["tasks"] == 0


WAYS = {
    "lambda": ("backend = local_cpu (", "num_graph_servers = 1 ("),
    "local_cpu": ("num_graph_servers = 1 (", "precision = mixed (", "hidden_size = 64 ("),
}


@pytest.mark.parametrize("backend", WAYS)
def test_what_does_not_fit_is_refused_with_its_parts_and_ways_out(
    backend: str, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("local_cloud.plan.memory_check.WORTH_IT", 1.0)
    job = prepared("cora", {"backend.name": backend, "model.hidden_size": "128"}, cache_dir)
    needed = memory_here(job).here
    refuse_what_does_not_fit(job, needed)
    with pytest.raises(SpecError) as refused:
        refuse_what_does_not_fit(job, needed - 1)
    error = refused.value
    assert error.what.startswith(f"this training takes about {needed / 1e9:.1f} GB of memory")
    assert "processes" in error.why
    assert ("functions" in error.why) == (backend == "lambda")
    assert all(way in error.fix for way in WAYS[backend])


def test_no_way_out_is_named_that_is_none(cache_dir: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(SpecError) as refused:
        refuse_what_does_not_fit(prepared("cora", {"cluster.num_graph_servers": "1"}, cache_dir), 0)
    assert refused.value.fix.startswith("several machines"), "of Cora processes are the most"
    monkeypatch.setattr("local_cloud.plan.memory_check.WORTH_IT", 1.0)
    job = prepared("cora", {"model.name": "gat", "cluster.num_graph_servers": "1"}, cache_dir)
    with pytest.raises(SpecError) as refused:
        refuse_what_does_not_fit(job, 0)
    assert refused.value.fix.startswith("hidden_size = 4 (")
    assert "mixed" not in refused.value.fix


def test_a_training_is_refused_before_a_role_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("local_cloud.training.available_memory_bytes", lambda: 100_000_000)
    recorder, options = Recorder(), RunOptions(ROOT, tmp_path / "cache", tmp_path / "run", in_process=True)
    with pytest.raises(SpecError, match=r"and 0\.1 GB are free"):
        train_job(load_my_graph(), options, recorder)
    assert recorder.starts == []
    assert not (tmp_path / "run").exists()


def test_who_insists_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("local_cloud.training.available_memory_bytes", lambda: 0)
    options = RunOptions(ROOT, tmp_path / "cache", tmp_path / "run", in_process=True, ignore_memory=True)
    assert train_job(load_my_graph(training__num_epochs="1"), options, Recorder()).state == "Completed"

"""`dataset.edge_weight` of a job: trained with, planned with, inspected, converted; or refused."""

from pathlib import Path

import numpy as np
import pytest

from cli.spec_flags import flag_layer
from common.errors import DatasetError, SpecError
from graph_server.ingest.doctor.diagnosis import Diagnosis
from local_cloud.convert import convert
from local_cloud.explain import graph_counts, predict_job
from local_cloud.inspect import inspect
from local_cloud.observer import Silent
from local_cloud.partition import PartitionReport, partition
from local_cloud.plan.counts import count_work
from local_cloud.plan.memory import count_memory
from local_cloud.prepare import PreparedJob, prepare_job
from local_cloud.training import RunOptions, train_job
from tests.local_cloud.jobs import MY_GRAPH, load

FEW = {"dataset.directed": "false", "training.num_epochs": "3", "cut.num_intervals": "4"}
WEIGHTED = {**FEW, "dataset.edge_weight": "weight"}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """The example graph, its edges with a weight each; an edge that stands in both directions has one."""
    folder = tmp_path / "weighted"
    folder.mkdir()
    for name in ("features.csv", "labels.csv"):
        (folder / name).write_bytes((Path(MY_GRAPH) / name).read_bytes())
    write_edges(folder, lambda source, target: 1 + (source + target) % 5 / 4)
    return folder


def write_edges(folder: Path, weight) -> None:
    ends = np.loadtxt(Path(MY_GRAPH) / "edges.csv", np.int64, delimiter=",", skiprows=1)
    lines = [f"{source},{target},{weight(source, target)}" for source, target in ends.tolist()]
    (folder / "edges.csv").write_text("\n".join(["source,target,weight", *lines]) + "\n")


def prepared(path: Path | str, cache_dir: Path, settings: dict[str, str]) -> PreparedJob:
    return prepare_job(load(str(path), settings).spec, base_folder=Path.cwd(), cache_dir=cache_dir, observer=Silent())


def trained(path: Path | str, tmp_path: Path, cache_dir: Path, settings: dict[str, str]) -> str:
    options = RunOptions(Path.cwd(), cache_dir, tmp_path / f"run{len(list(tmp_path.iterdir()))}", in_process=True)
    return str(train_job(load(str(path), settings), options, Silent()).weights_sha256)


def test_a_training_uses_them_and_only_when_it_is_told_to(graph: Path, tmp_path: Path, cache_dir: Path):
    plain = trained(MY_GRAPH, tmp_path, cache_dir, FEW)
    assert trained(graph, tmp_path, cache_dir, FEW) == plain
    with_weights = trained(graph, tmp_path, cache_dir, WEIGHTED)
    assert with_weights != plain
    write_edges(graph, lambda source, target: 1)
    assert trained(graph, tmp_path, cache_dir, WEIGHTED) == plain


def test_a_converted_folder_keeps_them(graph: Path, tmp_path: Path, cache_dir: Path):
    flags = flag_layer({key: value for key, value in WEIGHTED.items() if not key.startswith("training")})
    convert(str(graph), tmp_path / "mine.dorylus", flags, Path.cwd())
    expected = trained(graph, tmp_path, cache_dir, WEIGHTED)
    few = {"training.num_epochs": "3"}
    assert trained(tmp_path / "mine.dorylus", tmp_path, cache_dir, few) == expected
    with pytest.raises(SpecError, match="weights of edges with gat"):
        prepared(tmp_path / "mine.dorylus", cache_dir, {"model.name": "gat"})


def test_a_converted_table_says_what_its_column_is_called(graph: Path, tmp_path: Path, cache_dir: Path):
    done = convert(str(graph), tmp_path / "g.parquet", flag_layer({"dataset.edge_weight": "weight"}), Path.cwd())
    assert "weights of edges are the column weight: train with dataset.edge_weight: weight" in done.notes
    job = prepared(tmp_path / "g.parquet", cache_dir, WEIGHTED)
    assert job.folder.manifest.source_fingerprint == prepared(graph, cache_dir, WEIGHTED).facts.fingerprint


def test_memory_and_work_count_them(graph: Path, cache_dir: Path):
    plain, weighted = (prepared(graph, cache_dir, settings) for settings in (FEW, WEIGHTED))
    edges = weighted.folder.manifest.num_edges
    one, other = (count_memory(job, threads=1).graph_servers[0].edges for job in (plain, weighted))
    assert other - one == 4 * edges
    works = [count_work(job, graph_counts(job.folder, 1)) for job in (plain, weighted)]
    gathers = (works[1].edge_bytes - works[0].edge_bytes) / (4 * edges)
    assert gathers == sum("Gather" in str(step) for step in weighted.programs.train.steps)
    flops = [predict_job(job, graph_counts(job.folder, 1)).flops for job in (plain, weighted)]
    assert flops[1] > flops[0]


def report_of(graph: Path, settings: dict[str, str], memory_bytes: int | None = None) -> PartitionReport:
    flags = flag_layer(settings)
    return partition(str(graph), None, flags, graph.parent, memory_bytes=memory_bytes, observer=Silent())


def test_a_partition_counts_them_with_and_without_a_limit(graph: Path):
    plain, weighted, limited = (report_of(graph, *how) for how in ((FEW,), (WEIGHTED,), (WEIGHTED, 10**9)))
    assert weighted.server_bytes[0] - plain.server_bytes[0] == 4 * weighted.num_edges
    assert limited.server_bytes == weighted.server_bytes


def diagnosis_of(graph: Path, settings: dict[str, str]) -> Diagnosis:
    return inspect(str(graph), flag_layer(settings), Path.cwd())


def test_the_doctor_shows_them(graph: Path):
    plain, weighted = (diagnosis_of(graph, settings) for settings in (FEW, WEIGHTED))
    assert plain.edges is not None
    assert weighted.edges is not None
    assert (plain.edges.weights, weighted.edges.weights) == (None, (1.0, 2.0))
    assert plain.memory is not None
    assert weighted.memory is not None
    assert weighted.memory.training > plain.memory.training
    assert weighted.accepted
    assert "edges.csv: column weight ignored; dataset.edge_weight names a column of weights" in plain.notes


def test_negative_ones_are_found_and_a_training_refuses_them(graph: Path, cache_dir: Path):
    write_edges(graph, lambda source, target: -0.5 if source == 122 else 1)
    diagnosis = diagnosis_of(graph, WEIGHTED)
    assert not diagnosis.accepted
    (finding,) = [finding for finding in diagnosis.findings if finding.code == "negative_weights"]
    assert finding.what.startswith("edges.csv: line 2, ")
    for model in ("gcn", "graphsage"):
        with pytest.raises(DatasetError, match="line 2.*negative weights, the first -0.5"):
            prepared(graph, cache_dir, {**WEIGHTED, "model.name": model})
    assert diagnosis_of(graph, {**WEIGHTED, "model.name": "gin"}).accepted
    prepared(graph, cache_dir, {**WEIGHTED, "model.name": "gin"})


def test_a_weight_that_is_none_is_a_finding(graph: Path):
    write_edges(graph, lambda source, target: "nan" if source == 122 else 1)
    diagnosis = diagnosis_of(graph, WEIGHTED)
    assert not diagnosis.accepted
    assert "line 2, " in diagnosis.findings[0].what

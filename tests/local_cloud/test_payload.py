"""What explain predicts of a train pass is what the trace adds up, to the byte."""

from pathlib import Path

import numpy as np
import pytest

from common import plugins
from common.errors import SpecError
from common.trace import StepRecord
from local_cloud.explain import computers_of, graph_counts, predict_job
from local_cloud.in_process import Watch, run_in_process
from local_cloud.observer import Silent
from local_cloud.payload import Computers, PassPayload, RunShape, pass_links, predict_links, predict_payload
from local_cloud.prepare import PreparedJob, prepare_job
from tests.local_cloud.jobs import INTERVALS, MY_GRAPH, ROOT, load

MODELS = plugins.names("common.models")


def prepared(target: str, settings: dict[str, str], cache_dir: Path) -> PreparedJob:
    spec = load(target, {**INTERVALS, "training.num_epochs": "3", **settings}).spec
    return prepare_job(spec, base_folder=ROOT, cache_dir=cache_dir, observer=Silent())


def predicted_and_traced(job: PreparedJob) -> tuple[PassPayload, list[StepRecord]]:
    records: list[StepRecord] = []
    result = run_in_process(job, Watch(record=records.append))
    assert all(result.intervals_per_server)
    assert sum(result.ghosts_per_server) > 0
    return predict_job(job, graph_counts(job.folder, job.spec.cluster.num_graph_servers)), records


def assert_equal(predicted: PassPayload, records: list[StepRecord], epoch: int) -> None:
    of_pass = [record for record in records if record.pass_ == f"train {epoch}"]
    for kind in ("rows_in", "rows_out", "weights", "gradients", "ghosts"):
        assert sum(getattr(record, kind) for record in of_pass) == getattr(predicted, kind), kind
    assert sum(record.payload for record in of_pass) == predicted.total


@pytest.mark.parametrize("model", MODELS)
def test_a_train_pass_moves_what_was_predicted(model: str, cache_dir: Path):
    predicted, records = predicted_and_traced(prepared("cora", {"model.name": model}, cache_dir))
    assert_equal(predicted, records, 2)
    assert_equal(predicted, records, 3)
    assert sum(record.constants for record in records) == predicted.constants


@pytest.mark.parametrize("directed", ["true", "false"])
@pytest.mark.parametrize("model", MODELS)
def test_without_evaluations_the_train_pass_fetches_the_weights(model: str, directed: str, cache_dir: Path):
    """The paper's program, on a graph whose ∇Gather reads other ghosts than its Gather when it is directed."""
    settings = {"model.name": model, "dataset.directed": directed, "training.eval_frequency": "0"}
    settings |= {"training.hoist": "false", "training.commute": "false"}
    predicted, records = predicted_and_traced(prepared(MY_GRAPH, settings, cache_dir))
    assert predicted.weights == predicted.weights_per_version > 0
    assert_equal(predicted, records, 2)


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gin"])
def test_rounded_rows_are_half_as_large(model: str, cache_dir: Path):
    settings = {"model.name": model, "dataset.directed": "false", "training.hoist": "false"}
    whole, _ = predicted_and_traced(prepared(MY_GRAPH, settings, cache_dir))
    rounded, records = predicted_and_traced(prepared(MY_GRAPH, settings | {"training.precision": "mixed"}, cache_dir))
    assert_equal(rounded, records, 2)
    assert 2 * rounded.ghosts == whole.ghosts > 0
    assert (rounded.rows_in, rounded.rows_out) == (whole.rows_in, whole.rows_out), "tensor tasks are not rounded"


def test_attention_is_not_rounded(cache_dir: Path):
    with pytest.raises(SpecError, match="precision = mixed with gat"):
        prepared("cora", {"model.name": "gat", "training.precision": "mixed"}, cache_dir)


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gin"])
def test_rounding_changes_little_and_something(model: str, cache_dir: Path):
    whole, rounded = (
        run_in_process(prepared("cora", {"model.name": model, "training.precision": precision}, cache_dir))
        for precision in ("float32", "mixed")
    )
    assert whole.logits is not None
    assert rounded.logits is not None
    away = np.abs(rounded.logits - whole.logits).max() / np.abs(whole.logits).max()
    assert 0 < away < 0.05, "three epochs from the same weights"


def test_sync_announces_without_payload(cache_dir: Path):
    settings = {"dataset.directed": "false", "training.mode": "sync"}
    predicted, records = predicted_and_traced(prepared(MY_GRAPH, settings, cache_dir))
    assert_equal(predicted, records, 2)


def test_more_graph_servers_than_intervals(cache_dir: Path):
    settings = {"dataset.directed": "false", "training.eval_frequency": "0"}
    settings |= {"cluster.num_graph_servers": "5", "cut.num_intervals": "2"}
    job = prepared(MY_GRAPH, settings, cache_dir)
    records: list[StepRecord] = []
    run_in_process(job, Watch(record=records.append))
    counts = graph_counts(job.folder, 5)
    assert counts.num_owners == 2
    assert_equal(predict_job(job, counts), records, 2)


# ---- by link


@pytest.mark.parametrize("frequency", [0, 1, 2])
@pytest.mark.parametrize("model", MODELS)
def test_the_links_of_a_whole_run(model: str, frequency: int, cache_dir: Path):
    """To the byte, whether the best weights are the last ones or not."""
    settings = {"model.name": model, "training.eval_frequency": str(frequency), "training.num_epochs": "7"}
    job = prepared("cora", settings, cache_dir)
    result, counts = run_in_process(job), graph_counts(job.folder, 3)
    run = RunShape.of(7, {0: 1, 1: 7, 2: 4}[frequency], best_version=result.stopped.best_version)
    predicted = predict_links(job.programs, counts, computers_of(job.spec, counts), run)
    moved = {link: result.traffic.payload[link] for link in predicted}
    assert moved == predicted
    assert predicted["graph_graph"] > 0
    assert predicted["parameter_graph"] > 0


def test_a_pass_after_the_first_adds_what_a_pass_moves(cache_dir: Path):
    job = prepared("cora", {"training.eval_frequency": "0"}, cache_dir)
    counts = graph_counts(job.folder, 3)
    for computers in (Computers("local_cpu", 3), Computers("lambda", 12)):
        longer, shorter = (predict_links(job.programs, counts, computers, RunShape(epochs, 1)) for epochs in (4, 3))
        difference = {link: longer[link] - shorter[link] for link in longer}
        assert difference == pass_links(predict_of(job, computers), computers)


def predict_of(job: PreparedJob, computers: Computers) -> PassPayload:
    counts = graph_counts(job.folder, 3)
    return predict_payload(job.programs, counts, computers, every_version_is_evaluated=False)


@pytest.mark.parametrize(("concurrency", "leases"), [(16, 12), (6, 6), (2, 3), (1, 3)])
def test_leases_that_own_intervals(concurrency: int, leases: int, cache_dir: Path):
    """12 intervals on 3 graph servers."""
    job = prepared("cora", {"backend.name": "lambda"}, cache_dir)
    counts = graph_counts(job.folder, 3)
    assert computers_of(job.spec, counts, concurrency=concurrency) == Computers("lambda", leases)

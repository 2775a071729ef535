"""Weights of edges, from the graph folder to the gradients: held against the reference, and against no weights."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError, SpecError
from graph_server.graph.folder_reader import GraphFolder
from local_cloud.in_process import RunResult, Watch, run_in_process
from local_cloud.prepare import PreparedJob, job_of_folder
from tests.reference import reference_of
from tests.small_jobs import small_dataset, small_job, with_weights
from tests.test_gradients import KEYS, LR, differences

MODELS = ("gcn", "graphsage", "gin")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


def weights_of(num_edges: int) -> np.ndarray:
    """Some are 0, and of each pair of repeats and of each edge and its reverse one has another weight."""
    weights = np.random.default_rng(7).uniform(0.1, 1.5, num_edges)
    weights[4::9] = 0
    return weights


def job(folder: Path, model: str, *, weights: np.ndarray | None, directed: bool = True, **keys: object) -> PreparedJob:
    dataset = small_dataset(directed=directed)
    if weights is not None:
        dataset = with_weights(dataset, weights)
    settings = {**KEYS, "model.name": model, "training.num_epochs": 2}
    settings |= {key.replace("__", "."): value for key, value in keys.items()}
    return small_job(dataset, folder, settings)


def train(job: PreparedJob, dtype: type = np.float64) -> tuple[RunResult, list[float]]:
    losses: list[float] = []
    return run_in_process(job, Watch(on_epoch=lambda metrics: losses.append(metrics.loss)), dtype=dtype), losses


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_loss_and_gradients_are_those_of_the_weighted_formula(folder, model, directed):
    """Of the second epoch, on two graph servers; undirected, an edge and its reverse weigh differently."""
    weights = weights_of(len(small_dataset(directed=directed).sources))
    shape = {"weights": weights, "directed": directed, "cluster__num_graph_servers": 2}
    one, _ = train(job(folder, model, **shape, training__num_epochs=1))
    prepared = job(folder, model, **shape)
    two, losses = train(prepared)
    assert min(two.ghosts_per_server) > 0

    reference = reference_of(prepared)
    assert abs(losses[1] - reference.loss(dict(one.last), 2)[0]) < 1e-12
    unweighted = replace(reference, edge_weights=None)
    assert abs(losses[1] - unweighted.loss(dict(one.last), 2)[0]) > 1e-4
    for name, slopes in differences(reference, dict(one.last), epoch=2).items():
        gradient = (one.last[name] - two.last[name]) / LR
        assert np.abs(gradient - slopes).max() < 1e-6, name
        assert np.abs(gradient).max() > 1e-4, f"{name} has no gradient to be checked"


def test_negative_weights_are_added_up(folder):
    weights = np.random.default_rng(1).normal(size=len(small_dataset().sources))
    one, _ = train(job(folder, "gin", weights=weights, training__num_epochs=1))
    prepared = job(folder, "gin", weights=weights)
    _, losses = train(prepared)
    assert abs(losses[1] - reference_of(prepared).loss(dict(one.last), 2)[0]) < 1e-12


@pytest.mark.parametrize("precision", ["float32", "mixed"])
@pytest.mark.parametrize("model", MODELS)
def test_weights_of_1_are_no_weights_to_the_last_bit(folder, model, precision):
    keys = {"training__precision": precision, "directed": False}
    plain, _ = train(job(folder, model, weights=None, **keys), np.float32)
    ones = np.ones(len(small_dataset(directed=False).sources))
    weighted, _ = train(job(folder, model, weights=ones, **keys), np.float32)
    for name, values in plain.last.items():
        assert np.array_equal(values, weighted.last[name]), name


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_the_same_bits_on_1_and_3_graph_servers(folder, model, directed):
    weights, results = weights_of(len(small_dataset(directed=directed).sources)), []
    for num_graph_servers in (1, 3):
        shape = {"directed": directed, "cluster__num_graph_servers": num_graph_servers}
        run, _ = train(job(folder, model, weights=weights, **shape), np.float32)
        results.append(run.last)
    for name, values in results[0].items():
        assert np.array_equal(values, results[1][name]), name


@pytest.mark.parametrize("model", MODELS)
def test_hoist_and_commute_change_rounding_only(folder, model):
    """In float64. A product with the weights of the first layer stands in front of a Gather, or behind it."""
    weights = weights_of(len(small_dataset().sources))
    runs = [
        train(job(folder, model, weights=weights, training__hoist=rules, training__commute=rules))[0].last
        for rules in (True, False)
    ]
    for name, values in runs[0].items():
        assert np.abs(values - runs[1][name]).max() < 1e-12, name


def test_attention_has_no_place_for_weights(folder):
    weighted = job(folder, "gcn", weights=weights_of(len(small_dataset().sources)))
    spec = job(folder, "gat", weights=None).spec
    with pytest.raises(SpecError, match="weights of edges with gat"):
        job_of_folder(spec, weighted.folder)
    asked = spec.model_copy(update={"dataset": spec.dataset.model_copy(update={"edge_weight": "w"})})
    plain = job(folder, "gcn", weights=None).folder
    with pytest.raises(SpecError, match="weights of edges with gat"):
        job_of_folder(asked, plain)


def test_negative_weights_are_refused_where_a_model_divides_by_their_sum(folder):
    reported = "edges.csv: line 7: 1 negative weights, the first -2"
    dataset = with_weights(small_dataset(), weights_of(len(small_dataset().sources)))
    dataset = replace(dataset, report={**dataset.report, "negative_weights": reported}, fingerprint="e" * 64)
    prepared = small_job(dataset, folder, {"model.name": "gin"})
    assert job_of_folder(prepared.spec, prepared.folder).folder is prepared.folder
    for model in ("gcn", "graphsage"):
        with pytest.raises(DatasetError, match="line 7: 1 negative") as caught:
            job_of_folder(small_job(dataset, folder, {"model.name": model}).spec, prepared.folder)
        assert model in caught.value.what


def test_a_folder_with_weights_says_so_and_one_without_is_as_before(folder):
    weighted = job(folder, "gcn", weights=weights_of(len(small_dataset().sources))).folder
    plain = job(folder, "gcn", weights=None).folder
    assert (weighted.manifest.format_version, weighted.manifest.weighted) == (2, True)
    assert (plain.manifest.format_version, plain.manifest.weighted, plain.weights(0)) == (1, False, None)
    assert {Path(name).stem for name in weighted.manifest.files} - {Path(n).stem for n in plain.manifest.files} == {
        "weights",
        "weight_sums",
    }
    GraphFolder.open(weighted.path, verify=True)

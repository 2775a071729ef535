"""Every task with every metric: the same bits on one graph server and on three, and better than nothing at the end."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from sklearn import metrics as sklearn

from common.errors import SpecError
from common.saga.tasks import METRICS
from local_cloud.training import RunOptions, train_job
from tests.cluster.processes import prepared, run_here, run_processes
from tests.cluster.real_jobs import train
from tests.local_cloud.jobs import ROOT, Recorder, load

NUM_NODES, WIDTH = 120, 3
SETTINGS = {
    "dataset.directed": "true",
    "training.num_epochs": "12",
    "training.lr": "0.05",
    "training.weight_decay": "0",
    "model.dropout": "0.2",
    "cut.num_intervals": "7",
    "cut.method": "hash",
}
SPREAD = {"cluster.num_graph_servers": "3", "cluster.num_parameter_servers": "2"}
EVERY = [(task, metric) for task, metrics in METRICS.items() for metric in metrics]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By task: what a vertex is, its features tell; a tenth of it is not known."""
    random, parent = np.random.default_rng(0), tmp_path_factory.mktemp("tasks")
    x = random.normal(size=(NUM_NODES, 6))
    score = x @ random.normal(size=(6, WIDTH))
    unknown = random.random(score.shape) < 0.1
    unknown[:4] = True  # four vertices without any label, in no mask
    labels = {
        "multi_class": np.where(unknown.all(axis=1), -1, score.argmax(axis=1)),
        "multi_label": np.where(unknown, np.nan, score > 0),
        "regression": np.where(unknown, np.nan, score),
    }
    edges = np.concatenate([np.tile(np.arange(NUM_NODES), (2, 1)).T, random.integers(0, NUM_NODES, (60, 2))])
    known = ~unknown.all(axis=1)
    masks = np.eye(4, dtype=np.int64)[np.where(known, random.choice(3, NUM_NODES, p=[0.5, 0.25, 0.25]), 3)][:, :3]
    for task, array in labels.items():
        (parent / task).mkdir()
        for name, values in {"labels": array, "edges": edges, "features": x, "masks": masks}.items():
            np.save(parent / task / f"{name}.npy", values)
    return {task: str(parent / task) for task in labels}


@pytest.mark.parametrize(("task", "metric"), EVERY)
def test_the_same_bits_on_any_number_of_servers_and_a_metric_that_improves(
    folders: dict[str, str], tmp_path: Path, task: str, metric: str
):
    settings = {**SETTINGS, "training.metric": metric}
    alone = train(folders[task], settings, tmp_path / "alone")
    assert train(folders[task], {**settings, **SPREAD}, tmp_path / "spread").bits == alone.bits
    found = [metrics.valid_metric for metrics in alone.bits.metrics]
    worst, best = (max(found), min(found)) if metric in ("rmse", "mae") else (min(found), max(found))
    assert abs(best - worst) > 0.1
    assert alone.result.stopped.best_epoch == found.index(best) + 1
    accuracies = {metrics.valid_accuracy is None for metrics in alone.bits.metrics}
    assert accuracies == {task == "regression"}


@pytest.mark.parametrize(("task", "backend"), [("multi_label", "lambda"), ("regression", "lambda")])
def test_in_processes_and_functions_too(folders: dict[str, str], tmp_path: Path, task: str, backend: str):
    settings = {**SETTINGS, **SPREAD, "training.num_epochs": "3"}
    there = run_processes(prepared(folders[task], {**settings, "backend.name": backend}, tmp_path))
    assert there.bits == run_here(prepared(folders[task], settings, tmp_path)).bits


@pytest.mark.parametrize("task", METRICS)
def test_predictions_and_summary_agree_with_scikit_learn(folders: dict[str, str], tmp_path: Path, task: str):
    options = RunOptions(ROOT, tmp_path / "cache", tmp_path / "run", in_process=True)
    summary = train_job(load(folders[task], SETTINGS), options, Recorder())
    assert summary.metric_name == METRICS[task][0]
    rows = pyarrow.parquet.read_table(tmp_path / "run" / "predictions.parquet").to_pylist()
    given = np.load(Path(folders[task]) / "labels.npy")
    assert all(row["label"] is None or None in np.ravel(row["label"]) for row in rows[:4])
    judged = [(row, labels) for row, labels in zip(rows, given, strict=True) if row["mask"] == "test"]
    logits = np.array([row["logits"] for row, _ in judged])
    if task == "multi_class":
        expected = np.mean([row["predicted"] == row["label"] == labels for row, labels in judged])
    else:
        of_one = sklearn.roc_auc_score if task == "multi_label" else sklearn.root_mean_squared_error
        truth = np.array([labels for _, labels in judged])
        known = ~np.isnan(truth)
        expected = np.mean([of_one(truth[known[:, k], k], logits[known[:, k], k]) for k in range(WIDTH)])
        told = np.array([[np.nan if one is None else one for one in row["label"]] for row, _ in judged])
        assert np.allclose(told, truth, equal_nan=True)
        answers = np.array([row["predicted"] for row, _ in judged])
        assert np.array_equal(answers, logits > 0 if task == "multi_label" else logits)
    assert summary.test_metric == pytest.approx(expected, rel=1e-6)
    assert (summary.test_accuracy is None) == (task == "regression")
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["metric_name"] == summary.metric_name


def test_a_regression_stops_at_its_target_from_above(folders: dict[str, str], tmp_path: Path):
    settings = {**SETTINGS, "training.num_epochs": "60", "training.target_metric": "1.8"}
    trained = train(folders["regression"], settings, tmp_path)
    found = [metrics.valid_metric for metrics in trained.bits.metrics]
    assert found[-1] <= 1.8 < min(found[:-1])


@pytest.mark.parametrize(
    ("task", "settings", "words"),
    [
        ("regression", {"training.metric": "accuracy"}, "regression is judged by rmse, mae"),
        ("multi_class", {"training.metric": "rmse"}, "multi_class is judged by accuracy, roc_auc"),
        ("regression", {"training.class_weights": "balanced"}, "numbers have no classes"),
        ("multi_label", {"training.class_weights": "1,2"}, "the dataset has 3 classes"),
    ],
)
def test_what_does_not_fit_the_task_is_refused(
    folders: dict[str, str], tmp_path: Path, task: str, settings: dict[str, str], words: str
):
    with pytest.raises(SpecError, match=words):
        prepared(folders[task], {**SETTINGS, **settings}, tmp_path)


def test_async_ranks_at_its_pauses_only(folders: dict[str, str], tmp_path: Path):
    settings = {**SETTINGS, "training.mode": "async", "training.eval_frequency": "4"}
    metrics = train(folders["multi_label"], settings, tmp_path).bits.metrics
    assert [one.epoch for one in metrics if one.valid_metric is not None] == [4, 8, 12]
    assert all(one.valid_accuracy is not None for one in metrics)


def test_one_step_per_interval_is_scaled_by_labelled_entries(folders: dict[str, str], tmp_path: Path):
    settings = {**SETTINGS, "training.mode": "async", "training.weight_update": "interval"}
    facts = prepared(folders["regression"], settings, tmp_path).facts
    labels, masks = (np.load(Path(folders["regression"]) / f"{name}.npy") for name in ("labels", "masks"))
    known = ~np.isnan(labels[masks[:, 0] == 1])
    assert facts.train_class_counts == tuple(known.sum(axis=0).tolist())
    assert sum(facts.train_per_interval) == known.sum()
    assert train(folders["regression"], settings, tmp_path).result.stopped.best_version is not None

"""One job from spec to run folder: what is left behind, in whatever way it ended."""

import csv
import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import safetensors.numpy
import yaml

from common.errors import DatasetError, RequestRefused, SpecError
from common.trace import read
from common.weights_hash import weights_sha256
from local_cloud.ctrl_c import FIRST
from local_cloud.observer import EpochReport
from local_cloud.summary import Summary
from local_cloud.training import RunOptions, train_job
from tests.local_cloud.jobs import MY_GRAPH, ROOT, Recorder, load, load_my_graph

KEYS = [
    *("job_id", "run_dir", "state", "metric_name", "test_metric", "valid_metric"),
    *("test_accuracy", "valid_accuracy", "best_epoch", "epochs"),
    *("seconds", "epoch_seconds_median", "weights_sha256", "cut_sha256", "bit_reproducible", "tasks", "relaunches"),
    *("lost_leases", "max_staleness", "bytes_moved", "lambda_gb_seconds", "lambda_requests", "cost_usd", "bill"),
    *("peak_pss_bytes", "restarts"),
]


@pytest.fixture
def options(tmp_path: Path, cache_dir: Path) -> RunOptions:
    return RunOptions(ROOT, cache_dir, tmp_path / "run")


def summary_file(options: RunOptions) -> dict[str, Any]:
    assert options.run_dir is not None
    loaded: dict[str, Any] = json.loads((options.run_dir / "summary.json").read_text())
    return loaded


def files(options: RunOptions) -> set[str]:
    assert options.run_dir is not None
    return {entry.name for entry in options.run_dir.iterdir()}


COMPLETE = {
    "spec.yaml",
    "metrics.jsonl",
    "trace.jsonl",
    "checkpoints",
    "weights.safetensors",
    "weights_last.safetensors",
    "predictions.parquet",
    "summary.json",
}


def test_everything_is_left_behind(options: RunOptions):
    observer = Recorder()
    summary = train_job(load_my_graph(), options, observer)
    run_dir = options.run_dir
    assert run_dir is not None
    assert files(options) == COMPLETE
    assert list(summary_file(options)) == KEYS
    assert (summary.state, summary.epochs, summary.run_dir) == ("Completed", 6, str(run_dir))
    assert observer.starts == [(summary.job_id, str(run_dir), 6)]
    assert [report.epoch for report in observer.reports] == [1, 2, 3, 4, 5, 6]
    assert len((run_dir / "metrics.jsonl").read_text().splitlines()) == 6
    last = safetensors.numpy.load_file(run_dir / "weights_last.safetensors")
    assert summary.weights_sha256 == weights_sha256(last)
    assert summary.tasks == sum(record.backend != "" for record in read(run_dir / "trace.jsonl"))
    assert summary.peak_pss_bytes > 10_000_000
    moved = summary_file(options)["bytes_moved"]
    assert list(moved) == ["graph_graph", "graph_lambda", "parameter_lambda", "parameter_graph"]
    assert moved["graph_graph"]["payload"] > 0
    assert moved["parameter_graph"]["overhead"] > 0
    assert moved["parameter_lambda"] == {"payload": 0, "overhead": 0}


def test_metrics_are_those_of_the_best_epoch(options: RunOptions):
    observer = Recorder()
    summary = train_job(load_my_graph(training__num_epochs="12"), options, observer)
    valid = [report.valid_accuracy or 0.0 for report in observer.reports]
    best = observer.reports[int(np.argmax(valid))]
    assert summary.best_epoch == best.epoch
    assert (summary.valid_accuracy, summary.test_accuracy) == (best.valid_accuracy, best.test_accuracy)


def test_predictions_are_in_the_users_order_and_words(options: RunOptions):
    summary = train_job(load_my_graph(training__num_epochs="12"), options, Recorder())
    assert options.run_dir is not None
    rows = pyarrow.parquet.read_table(options.run_dir / "predictions.parquet").to_pylist()
    labels = dict(csv.reader((ROOT / "examples/my_graph/labels.csv").read_text().splitlines()))
    ids = [line.split(",")[0] for line in (ROOT / "examples/my_graph/features.csv").read_text().splitlines()[1:]]
    assert ids != sorted(ids)
    assert [row["id"] for row in rows] == [int(one) for one in ids]
    assert [row["label"] or "" for row in rows] == [labels[one] for one in ids]
    words = sorted({label for label in labels.values() if label not in ("", "label")})
    assert [row["predicted"] for row in rows] == [words[int(np.argmax(row["logits"]))] for row in rows]
    assert [row["mask"] for row in rows if row["label"] is None] == [None] * 3
    for mask, accuracy in (("test", summary.test_accuracy), ("valid", summary.valid_accuracy)):
        judged = [row["label"] == row["predicted"] for row in rows if row["mask"] == mask]
        assert sum(judged) / len(judged) == pytest.approx(accuracy)


def test_the_resolved_spec_trains_again_from_anywhere(options: RunOptions, tmp_path: Path):
    first = train_job(load("examples/my_graph.yaml", {"training.num_epochs": "3"}), options, Recorder())
    spec = tmp_path / "run" / "spec.yaml"
    assert yaml.safe_load(spec.read_text())["dataset"]["path"] == MY_GRAPH
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    again = load(str(spec), {}, elsewhere)
    second = train_job(again, RunOptions(elsewhere, options.cache_dir), Recorder())
    assert second.weights_sha256 == first.weights_sha256
    assert Path(second.run_dir) == elsewhere / "runs" / second.job_id


def test_a_bundled_name_stays_a_name(options: RunOptions, tmp_path: Path):
    train_job(load("cora", {"training.num_epochs": "1"}), options, Recorder())
    assert yaml.safe_load((tmp_path / "run" / "spec.yaml").read_text())["dataset"]["path"] == "cora"


@pytest.mark.parametrize("example", ["cora", "my_graph"])
def test_the_examples_train(options: RunOptions, example: str):
    num_epochs = {"cora": "4", "my_graph": "60"}[example]
    summary = train_job(load(f"examples/{example}.yaml", {"training.num_epochs": num_epochs}), options, Recorder())
    assert summary.state == "Completed"
    if example == "my_graph":
        assert (summary.test_accuracy or 0) > 0.8


def test_the_pubmed_example_is_a_job_spec(tmp_path: Path):
    (tmp_path / "pubmed.yaml").write_text((ROOT / "examples/pubmed.yaml").read_text())
    with pytest.raises(DatasetError, match="data/planetoid_pubmed does not exist"):
        load("pubmed.yaml", {}, tmp_path)


def test_notes_of_the_spec_reach_the_observer(options: RunOptions, tmp_path: Path):
    (tmp_path / "job.yaml").write_text(f"dataset: {{path: {MY_GRAPH}, directed: false}}\ntraining: {{epochs: 1}}\n")
    observer = Recorder()
    train_job(load(str(tmp_path / "job.yaml"), {}), options, observer)
    assert observer.notes == ["training.epochs (job.yaml:2) is called num_epochs here; it is accepted"]


def test_a_run_folder_that_is_not_empty_is_refused_before_anything_is_read(options: RunOptions, tmp_path: Path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    observer = Recorder()
    with pytest.raises(SpecError, match="is not empty"):
        train_job(load_my_graph(), options, observer)
    assert observer.phases == []
    assert files(options) == {"notes.txt"}


def test_what_is_wrong_before_training_leaves_no_run_folder(options: RunOptions, tmp_path: Path):
    resolved = load_my_graph(dataset__split__train="0.5", dataset__split__valid="0", training__use_early_stop="true")
    with pytest.raises(SpecError, match="the valid mask is empty"):
        train_job(resolved, options, Recorder())
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_loss_that_is_not_finite_fails_the_job_with_its_reason(options: RunOptions):
    summary = train_job(load_my_graph(training__lr="1e30"), options, Recorder())
    assert summary.state == "Failed"
    found = summary_file(options)
    assert list(found) == [*KEYS, "failure_reason"]
    assert "set a smaller training.lr" in found["failure_reason"]
    assert files(options) >= {"spec.yaml", "metrics.jsonl", "trace.jsonl", "weights_last.safetensors"}
    assert "predictions.parquet" not in files(options)


def test_an_error_of_a_role_is_raised_and_the_summary_says_failed(options: RunOptions, tmp_path: Path):
    class FullDisk(Recorder):
        def at_epoch_end(self, report: EpochReport) -> None:
            if report.epoch == 3:
                raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        train_job(load_my_graph(), options, FullDisk())
    found = summary_file(options)
    # The roles may have gone on for some epochs before they heard of it.
    assert found["state"] == "Failed"
    assert 1 <= found["best_epoch"] <= found["epochs"]
    assert found["epochs"] >= 3
    assert "No space left on device" in found["failure_reason"]
    assert files(options) | {"checkpoints"} == COMPLETE - {"predictions.parquet"}
    last = safetensors.numpy.load_file(tmp_path / "run" / "weights_last.safetensors")
    assert found["weights_sha256"] == weights_sha256(last)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_gradients_that_are_not_finite_fail_the_job_with_the_error_of_the_weight_store(
    options: RunOptions, tmp_path: Path
):
    huge = tmp_path / "huge"
    huge.mkdir()
    for name in ("edges", "labels"):
        (huge / f"{name}.csv").write_text((ROOT / f"examples/my_graph/{name}.csv").read_text())
    lines = (ROOT / "examples/my_graph/features.csv").read_text().splitlines()
    (huge / "features.csv").write_text("\n".join([lines[0], *(line.replace(",1", ",3e38") for line in lines[1:])]))
    settings = {"dataset.directed": "false", "model.dropout": "0", "training.num_epochs": "2"}
    with pytest.raises(RequestRefused, match="not finite"):
        train_job(load(str(huge), settings), options, Recorder())
    assert summary_file(options)["state"] == "Failed"


class Presses(Recorder):
    """Presses Ctrl-C at the end of the second epoch."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._times = times

    def at_epoch_end(self, report: EpochReport) -> None:
        if report.epoch == 2:
            for _ in range(self._times):
                signal.raise_signal(signal.SIGINT)


def stopped_run(times: int, options: RunOptions) -> tuple[Summary, Presses]:
    observer = Presses(times)
    before = signal.getsignal(signal.SIGINT)
    summary = train_job(load_my_graph(training__num_epochs="1000"), options, observer)
    assert signal.getsignal(signal.SIGINT) is before
    return summary, observer


def test_the_first_ctrl_c_ends_after_the_epoch_with_everything_written(options: RunOptions):
    summary, observer = stopped_run(1, options)
    assert observer.notes == [FIRST]
    assert summary.state == "Stopped"
    assert 2 <= summary.epochs <= 4
    assert files(options) == COMPLETE
    assert summary_file(options)["state"] == "Stopped"


def test_the_second_ctrl_c_ends_at_once_and_keeps_the_weights(options: RunOptions, tmp_path: Path):
    summary, observer = stopped_run(2, options)
    assert (summary.state, summary.epochs) == ("Stopped", 2)
    assert observer.notes[0] == FIRST
    assert "kept" in observer.notes[-1]
    assert files(options) | {"checkpoints"} == COMPLETE - {"predictions.parquet"}
    last = safetensors.numpy.load_file(tmp_path / "run" / "weights_last.safetensors")
    assert summary.weights_sha256 == weights_sha256(last)


def test_ctrl_c_while_the_data_is_read_keeps_nothing(options: RunOptions, tmp_path: Path):
    class Early(Recorder):
        def doing(self, what: str) -> None:
            signal.raise_signal(signal.SIGINT)

    # As in a program of one's own, whatever another test has left.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        train_job(load_my_graph(), options, Early())
    assert not (tmp_path / "run").exists()

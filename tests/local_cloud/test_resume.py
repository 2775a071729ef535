"""A run that broke off goes on, in its own folder, to the same bytes as if nothing had happened."""

import json
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cli.spec_flags import flag_layer
from common.errors import CheckpointError, SpecError
from common.resolve_spec import ResolvedSpec
from local_cloud.ctrl_c import FIRST, TERMINATED
from local_cloud.observer import EpochReport
from local_cloud.resume import load_run
from local_cloud.summary import Summary
from local_cloud.training import RunOptions, train_job
from tests.buckets import Bucket, bucket
from tests.local_cloud.jobs import ROOT, Recorder, load_my_graph

RESULTS = ("weights.safetensors", "weights_last.safetensors", "predictions.parquet")
SETTINGS = {"training__num_epochs": "12", "training__mode": "pipe", "output__save_model_frequency": "5"}


class Stopping(Recorder):
    """Signals itself at the end of an epoch."""

    def __init__(self, epoch: int, *signals: signal.Signals) -> None:
        super().__init__()
        self._epoch, self._signals = epoch, signals

    def at_epoch_end(self, report: EpochReport) -> None:
        if report.epoch == self._epoch:
            for number in self._signals:
                signal.raise_signal(number)


@pytest.fixture
def options(tmp_path: Path, cache_dir: Path) -> RunOptions:
    return RunOptions(ROOT, cache_dir, tmp_path / "run", in_process=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """The run folder of the same job, never disturbed; each once."""
    parent = tmp_path_factory.mktemp("whole")

    @cache
    def run(**settings: str) -> Path:
        folder = parent / f"run{len(list(parent.iterdir()))}"
        resolved = load_my_graph(**{**SETTINGS, **settings})
        train_job(resolved, RunOptions(ROOT, parent / "cache", folder, in_process=True), Recorder())
        return folder

    return run


def folder_of(options: RunOptions) -> Path:
    assert options.run_dir is not None
    return options.run_dir


def stop(options: RunOptions, *signals: signal.Signals, epoch: int = 3, **settings: str) -> tuple[Summary, Stopping]:
    observer = Stopping(epoch, *(signals or (signal.SIGINT,)))
    return train_job(load_my_graph(**{**SETTINGS, **settings}), options, observer), observer


def again(options: RunOptions, flags: dict[str, str] | None = None) -> ResolvedSpec:
    return load_run(folder_of(options), flag_layer(flags or {}), ROOT)


def resume(options: RunOptions, flags: dict[str, str] | None = None, observer: Recorder | None = None) -> Summary:
    return train_job(again(options, flags), replace(options, resume=True), observer or Recorder())


def metrics(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def assert_the_same(options: RunOptions, whole: Path) -> None:
    folder = folder_of(options)
    for name in RESULTS:
        assert (folder / name).read_bytes() == (whole / name).read_bytes(), name
    assert metrics(folder) == metrics(whole)


# ---- the same bytes


@pytest.mark.parametrize("mode", ["sync", "pipe"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_was_stopped_ends_as_if_it_had_never_been(
    options: RunOptions, whole: Callable[..., Path], mode: str, number: signal.Signals
):
    stopped, observer = stop(options, number, training__mode=mode)
    assert observer.notes == [FIRST if number == signal.SIGINT else TERMINATED]
    assert (stopped.state, stopped.stop_reason) == (
        "Stopped",
        "stopped by Ctrl-C" if number == signal.SIGINT else "stopped by SIGTERM",
    )
    ended = resume(options)
    assert_the_same(options, whole(training__mode=mode))
    assert (ended.state, ended.epochs, ended.job_id) == ("Completed", 12, stopped.job_id)


@pytest.mark.parametrize(
    "machine",
    [
        {"cluster.num_graph_servers": "1", "cluster.num_parameter_servers": "3"},
        {"cluster.num_graph_servers": "5", "cluster.num_parameter_servers": "1"},
    ],
)
def test_on_another_machine(options: RunOptions, whole: Callable[..., Path], machine: dict[str, str]):
    stop(options, cluster__num_parameter_servers="2")
    resume(options, machine)
    assert_the_same(options, whole())
    spec = (folder_of(options) / "spec.yaml").read_text()
    for key, value in machine.items():
        assert f"{key.partition('.')[2]}: {value} " in spec


def test_as_processes(options: RunOptions, whole: Callable[..., Path]):
    stop(options)
    resume(replace(options, in_process=False), {"cluster.num_graph_servers": "2"})
    assert_the_same(options, whole())


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_with_what_an_optimizer_remembers(options: RunOptions, whole: Callable[..., Path], optimizer: str):
    settings = {"training__optimizer": optimizer, **({"training__momentum": "0.9"} if optimizer == "sgd" else {})}
    stop(options, **settings)
    resume(options)
    assert_the_same(options, whole(**settings))


def test_early_stopping_counts_on(options: RunOptions, whole: Callable[..., Path]):
    settings = {
        "training__num_epochs": "60",
        "training__use_early_stop": "true",
        "training__early_stop_rounds": "4",
        "training__lr": "0.1",
    }
    undisturbed = whole(**settings)
    assert 5 < len(metrics(undisturbed)) < 60
    stop(options, epoch=len(metrics(undisturbed)) - 4, **settings)
    resume(options)
    assert_the_same(options, undisturbed)


def test_stopped_three_times(options: RunOptions, whole: Callable[..., Path]):
    stop(options, epoch=2)
    for epoch in (5, 8):
        resume(options, observer=Stopping(epoch, signal.SIGTERM))
    resume(options)
    assert_the_same(options, whole())


def test_an_evaluation_that_was_not_due_is_forgotten(options: RunOptions, whole: Callable[..., Path]):
    settings = {"training__eval_frequency": "4"}
    stop(options, epoch=6, **settings)
    resume(options)
    folder, undisturbed = folder_of(options), whole(**settings)
    for name in RESULTS:
        assert (folder / name).read_bytes() == (undisturbed / name).read_bytes(), name


@pytest.fixture
def killed(options: RunOptions) -> RunOptions:
    """As it looks after kill -9 in epoch 8: a checkpoint of epoch 5, no results, half a line."""
    stop(options, epoch=8)
    folder = folder_of(options)
    for name in (*RESULTS, "summary.json"):
        (folder / name).unlink()
    for path in (folder / "checkpoints").iterdir():
        if path.name != "epoch-000005":
            shutil.rmtree(path)
    with (folder / "metrics.jsonl").open("a") as lines:
        lines.write('{"epoch":9,"los')
    return options


def test_a_run_that_was_killed(killed: RunOptions, whole: Callable[..., Path]):
    observer = Recorder()
    ended = resume(killed, observer=observer)
    assert_the_same(killed, whole())
    assert observer.notes == ["going on after epoch 5"]
    assert [report.epoch for report in observer.reports] == list(range(6, 13))
    assert ended.epochs == 12
    assert ended.cost_usd == pytest.approx(2 * 4 * 60 * 0.29 / 3600)


def test_a_run_that_was_killed_between_its_last_checkpoint_and_its_results(
    options: RunOptions, whole: Callable[..., Path]
):
    train_job(load_my_graph(**SETTINGS), options, Recorder())
    folder = folder_of(options)
    for name in (*RESULTS, "summary.json"):
        (folder / name).unlink()
    assert resume(options).state == "Completed"
    assert_the_same(options, whole())


def test_a_damaged_checkpoint_is_passed_over(options: RunOptions, whole: Callable[..., Path]):
    stop(options, epoch=8)
    newest = sorted((folder_of(options) / "checkpoints").iterdir())[-1]
    (newest / "shard-0-of-1.safetensors").write_bytes(b"")
    observer = Recorder()
    resume(options, observer=observer)
    assert observer.notes[0].startswith(f"the checkpoint of epoch {int(newest.name[-6:])} is damaged and is not used: ")
    assert observer.notes[1] == "going on after epoch 5"
    assert_the_same(options, whole())


def test_checkpoints_in_a_bucket(options: RunOptions, whole: Callable[..., Path], monkeypatch: pytest.MonkeyPatch):
    """Of processes."""
    with bucket(monkeypatch) as s3:
        there = replace(options, in_process=False, checkpoints=f"{s3.url}/checkpoints", s3_endpoint=s3.endpoint_url)
        stop(there, cluster__num_graph_servers="1", cluster__num_parameter_servers="2")
        _assert_only_there(s3, there)
        resume(there)
    assert_the_same(options, whole())


def _assert_only_there(s3: Bucket, options: RunOptions) -> None:
    assert any(name.endswith("/manifest.json") for name in s3.names())
    assert not (folder_of(options) / "checkpoints").exists()


# ---- what is counted


def test_the_summary_counts_both(options: RunOptions):
    stopped, _ = stop(options)
    ended = resume(options)
    assert ended.seconds > stopped.seconds
    assert ended.tasks > stopped.tasks
    assert ended.bytes_moved["parameter_graph"].payload > stopped.bytes_moved["parameter_graph"].payload
    assert stopped.cost_usd is not None
    assert ended.cost_usd == pytest.approx(2 * stopped.cost_usd)
    assert ended.restarts == 0
    written = json.loads((folder_of(options) / "summary.json").read_text())
    assert "stop_reason" not in written
    assert written["epochs"] == 12


def test_more_epochs_may_be_asked_for(options: RunOptions, whole: Callable[..., Path]):
    stop(options, training__num_epochs="7")
    resume(options, {"training.num_epochs": "12"})
    assert_the_same(options, whole())


# ---- what is refused


def test_a_completed_run(options: RunOptions):
    train_job(load_my_graph(**SETTINGS), options, Recorder())
    with pytest.raises(SpecError) as error:
        resume(options, {"training.num_epochs": "20"})
    assert str(error.value) == (
        f"the run in {options.run_dir} is Completed\n"
        "  why: all it was to do is done, after epoch 12\n"
        "  fix: start a new run with more epochs"
    )


def test_a_run_without_a_checkpoint(options: RunOptions):
    stop(options)
    shutil.rmtree(folder_of(options) / "checkpoints")
    with pytest.raises(CheckpointError) as error:
        resume(options)
    assert str(error.value) == (
        f"there is no checkpoint in {options.run_dir}/checkpoints\n"
        "  why: the run ended before its first one (output.save_model_frequency, output.checkpoint_seconds)\n"
        f"  fix: start again: dorylus train {options.run_dir}/spec.yaml"
    )


def test_a_folder_that_is_no_run(options: RunOptions, tmp_path: Path):
    with pytest.raises(SpecError) as error:
        load_run(tmp_path, flag_layer({}), ROOT)
    assert str(error.value) == (
        f"{tmp_path} is not a run folder\n"
        "  why: it has no spec.yaml\n"
        "  fix: name the folder that a run has left, such as runs/<job_id>"
    )


@pytest.mark.parametrize(
    ("key", "value", "flag", "why"),
    [
        ("training.lr", "0.5", "--lr", "it decides what is computed, and the checkpoint was computed otherwise"),
        ("model.name", "gat", "--model", "it decides what is computed, and the checkpoint was computed otherwise"),
        ("training.seed", "1", "--seed", "it decides what is computed, and the checkpoint was computed otherwise"),
        ("dataset.path", "cora", "--dataset", "it decides what is computed, and the checkpoint was computed otherwise"),
        ("cut.num_intervals", "3", "--num-intervals", "it decides what is computed, and the checkpoint was"),
        ("output.path", "elsewhere", "--output", "a resumed run stays in its folder, under its name"),
        ("name", "other", "--name", "a resumed run stays in its folder, under its name"),
    ],
)
def test_what_may_not_be_given_anew(options: RunOptions, key: str, value: str, flag: str, why: str):
    with pytest.raises(SpecError) as error:
        again(options, {key: value})
    assert error.value.what == f"{key} ({flag}) cannot be changed when a run is resumed"
    assert error.value.why.startswith(why)
    assert error.value.fix == f"remove {flag}, or start a new run"


def test_fewer_epochs_than_are_done(options: RunOptions):
    stop(options)
    with pytest.raises(SpecError, match="the run has a checkpoint of epoch [34] already"):
        resume(options, {"training.num_epochs": "2"})


def test_a_spec_that_was_edited(options: RunOptions):
    stop(options)
    spec = folder_of(options) / "spec.yaml"
    spec.write_text(spec.read_text().replace("lr: 0.01", "lr: 0.02"))
    before = spec.read_bytes()
    with pytest.raises(CheckpointError, match=r"training\.lr is 0\.02, and was 0\.01"):
        resume(options)
    assert spec.read_bytes() == before


def test_a_run_that_is_going_on(options: RunOptions):
    class Curious(Stopping):
        refused: list[SpecError] = []  # noqa: RUF012  one run asks once

        def at_epoch_end(self, report: EpochReport) -> None:
            if report.epoch == 3:
                with pytest.raises(SpecError) as error:
                    resume(options)
                self.refused.append(error.value)
            super().at_epoch_end(report)

    observer = Curious(4, signal.SIGTERM)
    train_job(load_my_graph(**SETTINGS), options, observer)
    assert str(observer.refused[0]) == (
        f"the run folder {options.run_dir} is in use\n"
        "  why: another process trains in it\n"
        "  fix: wait for it, or stop it with Ctrl-C or SIGTERM"
    )


# ---- checkpoints that cannot be written


@pytest.mark.parametrize("in_process", [True, False])
def test_a_run_without_room_for_checkpoints_goes_on_and_says_so_until_the_third_time(
    options: RunOptions, in_process: bool
):
    class InTheWay(Recorder):
        def training_starts(self, job_id: str, run_dir: str, num_epochs: int) -> None:
            (folder_of(options) / "checkpoints").write_text("")

    observer = InTheWay()
    settings = {**SETTINGS, "output__save_model_frequency": "2"}
    summary = train_job(load_my_graph(**settings), replace(options, in_process=in_process), observer)
    assert summary.state == "Failed"
    assert isinstance(summary.failure_reason, str)
    assert summary.failure_reason.startswith("the checkpoint of epoch 6 cannot be written to")
    assert summary.epochs == 6
    assert [note.splitlines()[0].split()[4] for note in observer.notes] == ["2", "4"]
    assert all(note.endswith("training goes on without it") for note in observer.notes)


# ---- the budget


def test_the_time_that_was_given_is_not_passed(options: RunOptions):
    observer = Recorder()
    given = {"budget__max_runtime_seconds": "9", "training__num_epochs": "100000"}
    stopped = train_job(load_my_graph(**given), options, observer)
    assert stopped.state == "Stopped"
    assert isinstance(stopped.stop_reason, str)
    assert stopped.stop_reason.startswith("budget.max_runtime_seconds = 9: the end would come after ")
    assert observer.notes == [f"stopping after this epoch: {stopped.stop_reason}"]
    assert any((folder_of(options) / "checkpoints").iterdir())
    used_up = {"budget.max_runtime_seconds": "1"}
    with pytest.raises(SpecError, match=r"budget.max_runtime_seconds = 1 is used up"):
        resume(options, used_up)
    ended = resume(options, {"budget.max_runtime_seconds": "600", "training.num_epochs": str(stopped.epochs + 2)})
    assert (ended.state, ended.epochs) == ("Completed", stopped.epochs + 2)


def test_a_start_that_is_not_paid_for_leaves_no_folder(options: RunOptions):
    with pytest.raises(SpecError, match="does not pay for a start"):
        train_job(load_my_graph(budget__max_cost_usd="0.001"), options, Recorder())
    assert not folder_of(options).exists()

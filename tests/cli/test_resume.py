"""`dorylus train --resume` as it is typed, after runs that ended in every way."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_train import DORYLUS, assert_refused, dorylus, environment, wait_for_epochs

LONG = ["--num-epochs", "60", "--save-model-frequency", "3"]


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command runs in an empty folder, with an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DORYLUS_CACHE", str(cache_dir))


def broken_off(how: signal.Signals, *flags: str) -> int:
    """The exit code of a run that gets a signal in an epoch after the seventh."""
    command = [*DORYLUS, "train", "cora", *LONG, "--run-dir", "run", *flags]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment(), **quiet) as process:  # type: ignore[call-overload]
        wait_for_epochs(Path("run"), 7, process)
        process.send_signal(how)
    return int(process.returncode)


def test_after_kill_9_the_same_weights_and_the_summary_alone_on_stdout():
    whole = dorylus("train", "cora", *LONG, "--run-dir", "whole", "--in-process", "--json")
    assert broken_off(signal.SIGKILL) == -signal.SIGKILL
    assert not Path("run/summary.json").exists()
    command = [*DORYLUS, "train", "--resume", "run", "--json"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    summary, expected = json.loads(done.stdout), json.loads(whole.stdout)
    assert summary["state"] == "Completed"
    for key in ("weights_sha256", "test_accuracy", "valid_accuracy", "best_epoch", "epochs"):
        assert summary[key] == expected[key]
    for name in ("weights.safetensors", "predictions.parquet"):
        assert Path("run", name).read_bytes() == Path("whole", name).read_bytes()
    assert done.stdout == Path("run/summary.json").read_text()


def test_a_stopped_run_says_how_to_go_on_and_a_completed_one_is_refused():
    assert broken_off(signal.SIGTERM, "--in-process") == 130
    done = dorylus("train", "--resume", "run", "--in-process", "--max-runtime-seconds", "1", "--quiet")
    assert_refused(done, 1, "error: budget.max_runtime_seconds = 1 is used up")
    done = dorylus("train", "--resume", "run", "--in-process", "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    done = dorylus("train", "--resume", "run", "--in-process")
    assert_refused(done, 1, "is Completed\n  why: all it was to do is done, after epoch 60")


def test_the_last_line_of_a_stopped_run_is_a_command():
    stopped = "--num-epochs", "100000", "--max-runtime-seconds", "6", "--run-dir", "run", "--in-process", "--quiet"
    done = dorylus("train", "cora", *stopped)
    assert done.exit_code == 130
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["state", "Stopped"]
    assert "budget.max_runtime_seconds = 6: the end would come after" in lines[1]
    assert lines[-1].split("  ")[-1].strip() == "dorylus train --resume run"


@pytest.mark.parametrize("also", [["cora"], ["--run-dir", "other"]])
def test_what_does_not_go_with_it(also: list[str]):
    done = dorylus("train", "--resume", "run", *also)
    assert_refused(done, 2, "a resumed run has its own job spec and its own folder")


def test_what_may_not_be_given_anew_and_what_is_no_run():
    done = dorylus("train", "--resume", "run", "--lr", "0.5")
    assert_refused(done, 1, "error: training.lr (--lr) cannot be changed when a run is resumed", "fix: remove --lr")
    assert_refused(dorylus("train", "--resume", "run"), 1, "error: run is not a run folder")

"""`dorylus train` as it is typed: what stands on stdout and stderr, and the exit code."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from safetensors.numpy import load_file

from cli.main import main
from common.weights_hash import weights_sha256
from tests.local_cloud.jobs import MY_GRAPH, ROOT

DORYLUS = [sys.executable, "-m", "cli.main"]
EPOCHS = ["--num-epochs", "4"]


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command runs in an empty folder, with an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DORYLUS_CACHE", str(cache_dir))


def dorylus(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160", "TERM": "xterm"}


def wait_for_epochs(run_dir: Path, num_epochs: int, process: "subprocess.Popen[Any]") -> None:
    deadline = time.monotonic() + 90
    metrics = run_dir / "metrics.jsonl"
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < num_epochs:
        assert process.poll() is None, "it ended before"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_version_and_help():
    assert re.fullmatch(r"dorylus \d+\.\d+\.\d+\n", dorylus("--version").stdout)
    said = dorylus("train", "--help").stdout
    groups = [line.split(":")[0] for line in said.splitlines() if line and not line.startswith(" ") and ":" in line]
    assert groups == [
        *("Usage", "Options", "Job", "dataset", "dataset.split", "cut", "model", "training"),
        *("cluster", "backend", "budget", "output"),
    ]
    assert all(flag in said for flag in ("--run-dir", "--cache-dir", "--quiet", "--json", "--num-epochs", "--no-hoist"))


def test_json_is_alone_on_stdout():
    command = [*DORYLUS, "train", "cora", *EPOCHS, "--run-dir", "run", "--json"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert done.stdout == Path("run/summary.json").read_text()
    assert (summary["state"], summary["epochs"]) == ("Completed", 4)
    assert done.stderr == ""


def test_plain_lines_where_there_is_no_terminal():
    done = dorylus("train", "cora", *EPOCHS)
    assert done.exit_code == 0
    (run_dir,) = Path("runs").iterdir()
    lines = done.stderr.splitlines()
    assert lines[0] == f"training gcn on cora, 4 epochs, into {run_dir.absolute()}"
    pattern = r"epoch \d/4  loss \d+\.\d{4}  train \d\.\d{4}  valid \d\.\d{4}  \d+\.\d epochs/s"
    assert [bool(re.fullmatch(pattern, line)) for line in lines[1:]] == [True] * 4
    names = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert names == [
        "state", "test accuracy", "valid accuracy", "best epoch", "seconds",
        "tensor tasks", "moved", "cost on AWS", "run folder",
    ]  # fmt: skip
    assert done.stdout.splitlines()[-1].split() == ["run", "folder", str(run_dir)]


def test_about_ten_lines_of_many_epochs():
    done = dorylus("train", MY_GRAPH, "--directed", "false", "--num-epochs", "45")
    assert [line.split()[1] for line in done.stderr.splitlines()[1:]] == [
        f"{epoch}/45" for epoch in (1, 5, 10, 15, 20, 25, 30, 35, 40, 45)
    ]


def test_quiet_says_only_how_it_ended():
    done = dorylus("train", "cora", *EPOCHS, "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("state           Completed\n")


def test_a_flag_for_every_kind_of_key():
    flags = [
        "--model",
        "gat",
        "--num-heads",
        "2",
        "--no-commute",
        "--weight-decay",
        "1e-3",
        "--class-weights",
        "balanced",
    ]
    flags += ["--num-intervals", "12", "--num-graph-servers", "3", "--num-parameter-servers", "2", "--name", "mine"]
    done = dorylus("train", "cora", *EPOCHS, *flags, "--json")
    assert done.exit_code == 0, (done.stderr, done.exception)
    summary = json.loads(done.stdout)
    assert summary["job_id"].startswith("mine-")
    spec = (Path(summary["run_dir"]) / "spec.yaml").read_text()
    for line in ("num_heads: 2", "commute: false", "weight_decay: 0.001", "class_weights: balanced"):
        assert re.search(rf"^  {line} +# --", spec, re.MULTILINE), line
    assert summary["bytes_moved"]["graph_graph"]["payload"] > 0


def test_a_terminal_shows_the_bar_and_a_table():
    leader, follower = pty.openpty()
    command = [*DORYLUS, "train", "cora", "--num-epochs", "30", "--run-dir", "run"]
    with subprocess.Popen(command, env=environment(), stdout=follower, stderr=follower, stdin=follower) as process:
        os.close(follower)
        shown = read_all(leader)
    os.close(leader)
    assert process.returncode == 0, shown
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert "starting the roles" in plain
    assert len(set(re.findall(r"epoch (\d+)/30", plain))) > 1
    assert re.search(
        r"gcn on cora .*epoch 30/30 loss \d\.\d{4}  train \d\.\d{4}  valid \d\.\d{4}  [\d.]+ epochs/s", plain
    )
    assert re.search(r"│ state +│ Completed +│", plain)
    assert re.search(r"│ run folder +│ run +│", plain)


def read_all(terminal: int) -> str:
    """Until the other side is closed: end of file on macOS, an error on Linux."""
    parts: list[bytes] = []
    while select.select([terminal], [], [], 120)[0]:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode(errors="replace")


def test_ctrl_c_ends_after_the_epoch_and_keeps_everything():
    command = [*DORYLUS, "train", "cora", "--num-epochs", "100000", "--run-dir", "run"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment(), text=True, **pipes) as process:
        wait_for_epochs(Path("run"), 2, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "note: stopping after this epoch; press Ctrl-C again to stop at once" in err.splitlines()
    assert "Traceback" not in err
    assert out.startswith("state           Stopped\n")
    summary = json.loads(Path("run/summary.json").read_text())
    assert summary["state"] == "Stopped"
    assert summary["epochs"] == len(Path("run/metrics.jsonl").read_text().splitlines()) >= 2
    assert summary["weights_sha256"] == weights_sha256(load_file("run/weights_last.safetensors"))
    assert Path("run/weights.safetensors").is_file()
    assert Path("run/predictions.parquet").is_file()


def assert_refused(done: Result, code: int, *said: str) -> None:
    assert (done.exit_code, done.stdout) == (code, "")
    for words in said:
        assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_key_of_a_job_spec():
    Path("job.yaml").write_text("dataset: cora\ntraining:\n  num_epoch: 5\n")
    assert_refused(
        dorylus("train", "job.yaml", "--json"),
        1,
        "error: training.num_epoch = 5 (job.yaml:3) is not a key of the job spec\n  fix: did you mean num_epochs?\n",
    )


def test_lr_as_yaml_reads_it_trains():
    Path("job.yaml").write_text("dataset: cora\ntraining:\n  lr: 1e-3\n  num_epochs: 1\n")
    summary = json.loads(dorylus("train", "job.yaml", "--json").stdout)
    assert "lr: 0.001 " in (Path(summary["run_dir"]) / "spec.yaml").read_text()


def test_a_wrong_value_and_a_wrong_flag():
    assert_refused(dorylus("train", "cora", "--lr", "fast"), 1, "error: training.lr = fast (--lr)", "  why: ")
    assert_refused(dorylus("train", "cora", "--deterministic"), 1, "not in this version")
    assert_refused(dorylus("train", "cora", "--num-epoch", "5"), 2, "No such option", "--num-epochs")


def test_nothing_to_train_on():
    assert_refused(dorylus("train"), 1, "error: nothing to train on\n  fix: dorylus train cora")


def test_a_run_folder_that_is_not_empty():
    Path("run").mkdir()
    Path("run/mine.txt").write_text("")
    done = dorylus("train", "cora", "--run-dir", "run")
    assert_refused(
        done, 1, "error: the run folder", "is not empty\n  why: it holds mine.txt", "  fix: name a new folder"
    )
    assert os.listdir("run") == ["mine.txt"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_training_that_fails_says_why_and_exits_with_1():
    done = dorylus("train", "cora", "--lr", "1e30", "--run-dir", "run", "--quiet")
    assert done.exit_code == 1
    assert re.search(r"^state +Failed\nreason +.*set a smaller training.lr", done.stdout)
    assert json.loads(Path("run/summary.json").read_text())["state"] == "Failed"


def test_what_nobody_expected_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch):
    Path("in_the_way").write_text("")
    with pytest.raises(OSError, match="in_the_way"):
        dorylus("train", "cora", "--cache-dir", "in_the_way")

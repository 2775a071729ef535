"""However a job ends, nothing of it is left: no process, no socket, no folder. And whoever is lost is named."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from common.epoch_metrics import EpochMetrics
from common.errors import ClusterError, DatasetError, DorylusError, PeerLost, TaskCrashed
from common.weights_hash import weights_sha256
from local_cloud.cluster import Cluster, ClusterOptions
from local_cloud.prepare import PreparedJob
from local_cloud.run_folder import new_job_id
from local_cloud.run_result import RunResult, Watch
from tests.cluster.process_list import Process, left_after_a_while, needs_proc, started_by
from tests.cluster.processes import SECONDS, prepared
from tests.local_cloud.jobs import MY_GRAPH, ROOT

pytestmark = needs_proc

SMALL = {
    "dataset.directed": "false",
    "training.num_epochs": "1000000",
    "cut.num_intervals": "4",
    "cluster.num_graph_servers": "2",
    "cluster.num_parameter_servers": "2",
}
ON_LAMBDA = {**SMALL, "backend.name": "lambda", "cluster.num_graph_servers": "1", "cluster.num_parameter_servers": "1"}
OTHERS_TIME = 10.0


# ---- this process as the launcher


@dataclass
class Launched:
    """A job that something happens to after an epoch: `then` is called once, with its processes at hand."""

    cluster: Cluster
    then: Callable[["Launched"], None]
    after_epoch: int = 2
    epochs: list[int] = field(default_factory=list)
    family: list[Process] = field(default_factory=list)
    kept: list[RunResult] = field(default_factory=list)
    own: set[int] = field(default_factory=lambda: {process.pid for process in started_by(os.getpid())})

    def run(self) -> RunResult:
        async def limited() -> RunResult:
            async with asyncio.timeout(SECONDS):
                return await self.cluster.run(Watch(on_epoch=self._epoch_ended, cut_short=self.kept.append))

        return asyncio.run(limited())

    def _epoch_ended(self, metrics: EpochMetrics) -> None:
        self.epochs.append(metrics.epoch)
        self.family += [process for process in started_by(os.getpid()) if process.pid not in self.own]
        self.own |= {process.pid for process in self.family}
        if metrics.epoch == self.after_epoch:
            self.then(self)

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        pids = {role.name: role.pid for role in self.cluster.roles}
        services = [process for process in self.family if "local_cloud.lambda_service" in process.command]
        os.kill(pids[name] if name in pids else services[0].pid, how)

    @property
    def workers(self) -> list[Process]:
        return [process for process in self.family if "worker_main.py" in process.command]

    def assert_nothing_is_left(self) -> None:
        assert not left_after_a_while(self.family)
        assert not Path(self.cluster.roles[0].start.scratch).exists()


@contextmanager
def launched(job: PreparedJob, then: Callable[[Launched], None], **options: object) -> Iterator[Launched]:
    made = Launched(Cluster(job, new_job_id("test"), ClusterOptions(**options)), then)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        made.assert_nothing_is_left()


@pytest.mark.parametrize(
    ("role", "secure"), [("graph1", False), ("parameter0", True), ("parameter1", False)], ids=lambda value: str(value)
)
def test_a_role_that_is_killed_ends_the_job_and_is_named(role: str, secure: bool, cache_dir: Path):
    job = prepared(MY_GRAPH, SMALL, cache_dir)
    with launched(job, lambda made: made.kill(role), secure=secure) as made:
        with pytest.raises(PeerLost) as error:
            made.run()
        assert error.value.what == f"{role} was killed by signal 9"
        assert len(made.family) == 4
    if role == "graph1":
        assert made.kept[0].stopped.last_version == made.epochs[-1]
        assert made.kept[0].best is not None


def test_a_worker_that_is_killed_harms_nobody_and_without_the_lambda_service_the_job_ends(cache_dir: Path):
    def then(made: Launched) -> None:
        assert made.workers
        os.kill(made.workers[0].pid, signal.SIGKILL)
        made.after_epoch, made.then = 12, lambda made: made.kill("the Lambda service")

    with launched(prepared(MY_GRAPH, ON_LAMBDA, cache_dir), then) as made:
        with pytest.raises(ClusterError) as error:
            made.run()
        assert error.value.what == "the local Lambda service ended with exit code -9"
        assert made.epochs[:12] == list(range(1, 13))
        assert made.kept


def test_a_task_that_fails_ends_the_job_with_its_own_words(cache_dir: Path):
    job = prepared(MY_GRAPH, {**ON_LAMBDA, "training.lr": "1e30", "training.eval_frequency": "0"}, cache_dir)
    with launched(job, lambda made: None) as made:
        with pytest.raises(TaskCrashed) as error:
            made.run()
        assert "values are not finite" in error.value.why
        assert "set a smaller training.lr" in error.value.why
    assert made.kept


def test_a_role_that_cannot_start_ends_the_job(cache_dir: Path):
    job = prepared(MY_GRAPH, SMALL, cache_dir)
    shutil.rmtree(job.folder.path)
    with launched(job, lambda made: None) as made, pytest.raises(DorylusError) as error:
        made.run()
    assert isinstance(error.value, DatasetError | ClusterError)
    assert str(job.folder.path) in str(error.value)


def test_a_job_that_succeeds_leaves_nothing(cache_dir: Path):
    job = prepared(MY_GRAPH, {**ON_LAMBDA, "training.num_epochs": "3"}, cache_dir)
    with launched(job, lambda made: None) as made:
        result = made.run()
    assert result.stopped.reason == "all 3 epochs are done"
    assert len(made.family) == 3 + len(made.workers)
    assert made.workers


@pytest.mark.cluster
def test_a_role_that_hangs_ends_the_job_and_is_named(cache_dir: Path):
    job = prepared(MY_GRAPH, SMALL, cache_dir)
    with launched(job, lambda made: made.kill("graph1", signal.SIGSTOP)) as made:
        with pytest.raises(PeerLost) as error:
            made.run()
        assert error.value.what.startswith("graph1 has not been heard of for 1")
    assert made.kept


# ---- the command as the launcher


@dataclass
class Command:
    process: "subprocess.Popen[str]"
    run_dir: Path
    family: list[Process] = field(default_factory=list)

    def wait_for_epochs(self, count: int) -> None:
        deadline, metrics = time.monotonic() + SECONDS, self.run_dir / "metrics.jsonl"
        while not metrics.exists() or metrics.read_bytes().count(b"\n") < count:
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def end(self, *signals: signal.Signals) -> str:
        """What it said."""
        self.family = started_by(self.process.pid)
        for number in signals:
            self.process.send_signal(number)
            time.sleep(0.2 if len(signals) > 1 else 0)
        return self.process.communicate(timeout=SECONDS)[1]

    @property
    def summary(self) -> dict[str, object]:
        return json.loads((self.run_dir / "summary.json").read_text())

    def assert_nothing_is_left(self, logs: set[str]) -> None:
        assert not left_after_a_while(self.family)
        folders = {Path(log).parent for log in logs}
        assert len(folders) == 1
        assert not folders.pop().exists()


@contextmanager
def command(run_dir: Path, settings: dict[str, str], *flags: str) -> Iterator[Command]:
    given = [word for key, value in settings.items() for word in (flag(key), value)]
    line = [sys.executable, "-m", "cli.main", "train", MY_GRAPH, *given, "--run-dir", str(run_dir), *flags]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DORYLUS_CACHE": str(run_dir.parent / "cache")}
    process = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    made = Command(process, run_dir)
    try:
        made.wait_for_epochs(3)
        logs = {process.log for process in started_by(made.process.pid) if process.log.endswith(".log")}
        yield made
        made.assert_nothing_is_left(logs)
    finally:
        process.kill()
        process.communicate()


def flag(key: str) -> str:
    return "--backend" if key == "backend.name" else "--" + key.rpartition(".")[2].replace("_", "-")


def test_kill_9_of_the_launcher_takes_everything_along(tmp_path: Path):
    with command(tmp_path / "run", ON_LAMBDA) as made:
        made.end(signal.SIGKILL)
        assert any("worker_main.py" in process.command for process in made.family)
    assert not (tmp_path / "run" / "summary.json").exists()


def test_sigterm_of_the_launcher_ends_after_the_epoch_with_a_checkpoint(tmp_path: Path):
    with command(tmp_path / "run", SMALL, "--secure") as made:
        said = made.end(signal.SIGTERM)
        assert len(made.family) == 4
    assert made.process.returncode == 130
    assert "note: stopping after this epoch; SIGTERM again stops at once" in said.splitlines()
    assert (made.summary["state"], made.summary["stop_reason"]) == ("Stopped", "stopped by SIGTERM")
    assert (tmp_path / "run" / "checkpoints" / f"epoch-{made.summary['epochs']:06d}" / "manifest.json").is_file()


def test_ctrl_c_ends_after_the_epoch_while_tasks_are_away_and_keeps_the_weights(tmp_path: Path):
    with command(tmp_path / "run", ON_LAMBDA) as made:
        said = made.end(signal.SIGINT)
    assert made.process.returncode == 130
    assert "Traceback" not in said
    assert made.summary["state"] == "Stopped"
    assert made.summary["weights_sha256"] == weights_sha256(load_file(made.run_dir / "weights_last.safetensors"))
    assert made.summary["lambda_requests"]
    assert (made.run_dir / "predictions.parquet").is_file()


def test_ctrl_c_twice_ends_at_once_and_keeps_the_weights(tmp_path: Path):
    """With tasks away it is in the middle of an epoch."""
    with command(tmp_path / "run", ON_LAMBDA) as made:
        made.end(signal.SIGSTOP, signal.SIGINT, signal.SIGCONT, signal.SIGINT)
    assert made.process.returncode == 130
    assert made.summary["state"] == "Stopped"
    assert (made.run_dir / "weights_last.safetensors").is_file()

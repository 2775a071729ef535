"""A role that is lost costs the epochs since the last checkpoint, and not one bit of the result."""

import json
import os
import signal
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from common.errors import PeerLost, TaskCrashed
from common.trace import read
from local_cloud.cluster import ClusterOptions
from local_cloud.observer import EpochReport
from local_cloud.summary import Summary
from local_cloud.training import RunOptions, train_job
from parameter_server.checkpoint import CheckpointFolder
from tests.cluster.process_list import needs_proc, started_by
from tests.cluster.processes import Ran, prepared, run_here
from tests.cluster.restarting import Restarting
from tests.local_cloud.jobs import MY_GRAPH, ROOT, Recorder, load

pytestmark = needs_proc

SMALL = {
    "dataset.directed": "false",
    "training.num_epochs": "14",
    "cut.num_intervals": "6",
    "cluster.num_graph_servers": "2",
    "cluster.num_parameter_servers": "2",
    "output.save_model_frequency": "3",
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Ran]:
    cache_dir = tmp_path_factory.mktemp("graphs")
    return cache(lambda: run_here(prepared(MY_GRAPH, SMALL, cache_dir)))


@pytest.fixture
def losing(cache_dir: Path, tmp_path: Path) -> Callable[..., Restarting]:
    def made(*losses: tuple[int, str], how: signal.Signals = signal.SIGKILL, **settings: str) -> Restarting:
        given = {name.replace("__", "."): value for name, value in settings.items()}
        job = prepared(MY_GRAPH, {**SMALL, **given}, cache_dir)
        options = ClusterOptions(checkpoints=str(tmp_path / "checkpoints"))
        return Restarting(job, options, list(losses), how)

    return made


@pytest.mark.parametrize("role", ["graph1", "parameter0", pytest.param("parameter1", marks=pytest.mark.cluster)])
def test_a_job_that_loses_a_role_ends_with_the_same_bits(
    role: str, losing: Callable[..., Restarting], undisturbed: Callable[[], Ran]
):
    job = losing((7, role))
    result = job.run()
    assert job.bits(result) == undisturbed().bits
    (after,) = job.rewound
    assert after in (6, 9, 12)  # it may have gone on for a while before the blow fell
    assert job.notes == [f"{role} was killed by signal 9; restart 1 goes on after epoch {after}"]
    assert {record.generation for record in job.records if record.backend} == {1, 2}
    assert not job.left


def test_before_the_first_checkpoint_it_begins_again(losing: Callable[..., Restarting], undisturbed: Callable[[], Ran]):
    job = losing((1, "parameter0"), output__save_model_frequency="100")
    assert job.bits(job.run()) == undisturbed().bits
    assert job.rewound == [0]
    assert job.notes == ["parameter0 was killed by signal 9; restart 1 goes on from the beginning"]


@pytest.mark.cluster
def test_the_same_graph_server_twice_in_a_row_and_one_fewer_goes_on(
    losing: Callable[..., Restarting], undisturbed: Callable[[], Ran]
):
    job = losing((4, "graph1"), (8, "graph1"))
    result = job.run()
    assert job.bits(result) == undisturbed().bits
    assert len(job.rewound) == 2
    assert job.notes[1].endswith(f"restart 2 goes on after epoch {job.rewound[1]}, with 1 graph servers")
    assert len(result.intervals_per_server) == 1
    assert result.traffic.payload["parameter_graph"] > 0


def test_a_damaged_checkpoint_is_passed_over(losing: Callable[..., Restarting], undisturbed: Callable[[], Ran]):
    job = losing((10, "graph0"))
    strike = job._strike

    def and_damage(role: str) -> None:
        strike(role)
        newest = sorted(Path(str(job.options.checkpoints)).glob("epoch-*/shard-0-of-2.safetensors"))[-1]
        newest.write_bytes(newest.read_bytes()[:-1])

    job._strike = and_damage  # type: ignore[method-assign]
    assert job.bits(job.run()) == undisturbed().bits
    assert "is damaged and is not used: shard-0-of-2.safetensors has" in job.notes[0]
    assert "restart 1 goes on after epoch" in job.notes[1]


def test_too_many_losses_end_the_job_with_the_whole_story(losing: Callable[..., Restarting]):
    job = losing((4, "parameter1"), (5, "graph0"), (6, "parameter1"), cluster__max_restarts="2")
    error = job.fails()
    assert isinstance(error, PeerLost)
    assert error.what == "parameter1 was killed by signal 9; the job was started 3 times"
    story = error.why.split("; ")
    assert [part.split(",")[0] for part in story] == ["generation 1", "generation 2", "generation 3"]
    assert [part.rpartition(": ")[2].split()[0] for part in story] == ["parameter1", "graph0", "parameter1"]
    assert "resume the run" in error.fix


def test_no_restart_is_allowed(losing: Callable[..., Restarting]):
    job = losing((4, "graph1"), cluster__max_restarts="0")
    error = job.fails()
    assert (type(error), error.what) == (PeerLost, "graph1 was killed by signal 9")
    assert job.rewound == []
    assert job.left[0].stopped.last_epoch >= 4


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_error_that_would_come_again_is_no_loss(losing: Callable[..., Restarting]):
    settings = {"training__lr": "1e30", "training__eval_frequency": "0", "backend__name": "lambda"}
    job = losing(cluster__num_graph_servers="1", cluster__num_parameter_servers="1", **settings)
    error = job.fails()
    assert isinstance(error, TaskCrashed)
    assert job.rewound == []


@pytest.mark.cluster
def test_checkpoints_are_pruned_while_generations_come_and_go(losing: Callable[..., Restarting]):
    job = losing((7, "graph1"), output__keep_checkpoints="1")
    result = job.run()
    folder = CheckpointFolder(str(job.options.checkpoints))
    newest = folder.newest()
    assert newest is not None
    assert (newest.epoch, newest.job.generation) == (14, 2)
    best = result.stopped.best_epoch
    assert len(list(Path(folder.url).iterdir())) <= 2
    assert newest.clock.best_epoch == best


# ---- the whole run, with its folder


class Striking(Recorder):
    """Kills a role at the end of an epoch, once; `then` is called right after."""

    def __init__(self, epoch: int, role: str, then: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._epoch, self._role, self._then = epoch, role, then

    def at_epoch_end(self, report: EpochReport) -> None:
        if report.epoch == self._epoch and self._role:
            ours = [process for process in started_by(os.getpid()) if Path(process.log).stem == self._role]
            os.kill(ours[-1].pid, signal.SIGKILL)
            self._role = ""
            self._then()


def train(options: RunOptions, observer: Recorder) -> Summary:
    return train_job(load(MY_GRAPH, SMALL), options, observer)


def test_the_run_folder_is_that_of_a_run_that_lost_nobody(cache_dir: Path, tmp_path: Path):
    whole = RunOptions(ROOT, cache_dir, tmp_path / "whole", in_process=True)
    undisturbed = train(whole, Recorder())
    observer = Striking(7, "graph1")
    summary = train(RunOptions(ROOT, cache_dir, tmp_path / "run"), observer)
    assert (summary.state, summary.restarts, summary.epochs) == ("Completed", 1, 14)
    assert summary.weights_sha256 == undisturbed.weights_sha256
    assert (summary.best_epoch, summary.test_accuracy) == (undisturbed.best_epoch, undisturbed.test_accuracy)
    for name in ("weights.safetensors", "weights_last.safetensors", "predictions.parquet"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == list(range(1, 15))
    records = read(tmp_path / "run" / "trace.jsonl")
    assert {record.generation for record in records} == {1, 2}
    assert summary.tasks == sum(bool(record.backend) for record in records) > undisturbed.tasks


@pytest.mark.cluster
def test_who_is_asked_to_stop_and_loses_a_role_stops_after_the_restart(cache_dir: Path, tmp_path: Path):
    observer = Striking(5, "parameter1", lambda: signal.raise_signal(signal.SIGTERM))
    summary = train(RunOptions(ROOT, cache_dir, tmp_path / "run"), observer)
    assert (summary.state, summary.stop_reason) == ("Stopped", "stopped by SIGTERM")
    assert summary.epochs < 14
    newest = CheckpointFolder(str(tmp_path / "run" / "checkpoints")).newest()
    assert newest is not None
    assert newest.epoch == summary.epochs


@pytest.mark.cluster
def test_a_role_that_hangs_is_lost_too(losing: Callable[..., Restarting], undisturbed: Callable[[], Ran]):
    job = losing((5, "graph1"), how=signal.SIGSTOP)
    assert job.bits(job.run()) == undisturbed().bits
    assert job.notes[-1].startswith("graph1 has not been heard of for 1")


@pytest.mark.cluster
def test_without_the_lambda_service_it_starts_again(losing: Callable[..., Restarting], undisturbed: Callable[[], Ran]):
    job = losing((5, "lambda"), backend__name="lambda")
    result = job.run()
    assert job.bits(result) == undisturbed().bits
    assert job.notes[0].startswith("the local Lambda service ended with exit code -9; restart 1 ")
    assert result.totals.lambda_requests > 0

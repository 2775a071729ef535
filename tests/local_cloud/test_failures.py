"""Something fails on one of three graph servers: the whole run ends with that error and leaves nothing running."""

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from common.errors import DorylusError, RequestRefused, ScheduleError, TaskCrashed
from common.trace import StepRecord
from graph_server.backends import local_cpu
from graph_server.backends.base import TensorTask
from graph_server.graph.tensor_store import TensorStore
from graph_server.schedule.arrivals import Arrivals
from graph_server.stages import gather
from graph_server.stages.gather import gather_rows
from local_cloud.in_process import run_in_process
from local_cloud.observer import Silent
from local_cloud.prepare import PreparedJob, prepare_job
from local_cloud.run_result import RunResult, Watch
from parameter_server.clock_events import ClockState
from tests.graph_server.shells import threads_left
from tests.local_cloud.jobs import ROOT, load_my_graph

Patch = pytest.MonkeyPatch
FAILING = 7
"""An interval: one graph server of three owns it."""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> PreparedJob:
    spec = load_my_graph().spec
    return prepare_job(spec, base_folder=ROOT, cache_dir=tmp_path_factory.mktemp("graph"), observer=Silent())


@pytest.fixture(autouse=True)
def _a_run_that_hangs_is_a_failure() -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise AssertionError("the run hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(50)  # before the deadline of a request would end it
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def fails(job: PreparedJob, expected: type[BaseException], watch: Watch | None = None) -> BaseException:
    with pytest.raises(expected) as raised:
        run_in_process(job, watch)
    assert not threads_left()
    return raised.value


def computes_until(patch: Patch, error: Callable[[], BaseException], *, epoch: int = 2) -> None:
    """One interval's tasks raise from this epoch on."""
    compute = local_cpu.Backend._compute

    def sometimes(backend: local_cpu.Backend, task: TensorTask, weights: Any) -> Any:
        if task.interval == FAILING and task.pass_.epoch >= epoch:
            raise error()
        return compute(backend, task, weights)

    patch.setattr(local_cpu.Backend, "_compute", sometimes)


def test_a_task_that_crashes_ends_the_run(job: PreparedJob, monkeypatch: Patch):
    computes_until(monkeypatch, lambda: TaskCrashed("interval 7 raised", why="a hole in the floor"))
    error = fails(job, TaskCrashed)
    assert str(error) == "interval 7 raised\n  why: a hole in the floor"


def test_a_bug_in_a_task_ends_the_run_too(job: PreparedJob, monkeypatch: Patch):
    computes_until(monkeypatch, lambda: KeyError("weight"))
    fails(job, KeyError)


def test_what_was_there_is_told_before_the_error(job: PreparedJob, monkeypatch: Patch):
    computes_until(monkeypatch, lambda: TaskCrashed("interval 7 raised"), epoch=4)
    left: list[RunResult] = []
    fails(job, TaskCrashed, Watch(cut_short=left.append))
    assert (left[0].stopped.state, left[0].stopped.reason) == (ClockState.FAILED, "interval 7 raised")
    assert left[0].stopped.last_version >= 3
    assert left[0].best is not None


def test_an_error_in_a_kernels_thread_ends_the_run(job: PreparedJob, monkeypatch: Patch):
    def broken(held: Any, pass_: Any, step: Any, rows: tuple[int, int], epochs: Any = None) -> None:
        if pass_.epoch == 2 and rows[0] > 0:
            raise IndexError("row 60 of 60")
        gather_rows(held, pass_, step, rows, epochs)

    monkeypatch.setattr(gather, "gather_rows", broken)
    assert str(fails(job, IndexError)) == "row 60 of 60"


def test_a_refused_ghost_ends_the_run_with_the_reason(job: PreparedJob, monkeypatch: Patch):
    """Sender and receiver do not agree about a block."""
    accept = TensorStore.accept_ghosts

    def disagree(store: TensorStore, pass_: Any, table: str, interval: int, block: np.ndarray) -> bool:
        return accept(store, pass_, table, interval, block[:-1] if interval == FAILING else block)

    monkeypatch.setattr(TensorStore, "accept_ghosts", disagree)
    assert f"of interval {FAILING} for table source1 in train 1" in str(fails(job, RequestRefused))


def test_a_bug_of_the_scheduler_ends_the_run_with_the_story(job: PreparedJob, monkeypatch: Patch):
    def illegal(arrivals: Arrivals, *arguments: Any) -> list[int]:
        raise ScheduleError("interval 7, READY, step 2: GATE_OPENED is illegal", why="its story: STARTED at step 0")

    monkeypatch.setattr(Arrivals, "add", illegal)
    assert "its story: STARTED at step 0" in str(fails(job, ScheduleError))


def test_an_error_of_whoever_watches_ends_the_run(job: PreparedJob):
    def full(record: StepRecord) -> None:
        if record.interval == FAILING:
            raise OSError(28, "No space left on device")

    fails(job, OSError, Watch(record=full))


def test_a_gradient_that_is_not_finite_ends_the_run_and_names_it(job: PreparedJob, monkeypatch: Patch):
    compute = local_cpu.compute

    def spoilt(model: Any, step: Any, inputs: Any) -> Any:
        outputs = compute(model, step, inputs)
        for gradient in outputs.gradients.values():
            gradient[...] = np.nan
        return outputs

    monkeypatch.setattr(local_cpu, "compute", spoilt)
    error = fails(job, DorylusError)
    assert "are not finite" in str(error)
    assert "gradient of layer1.bias, interval" in str(error)
    assert "set a smaller training.lr" in str(error)

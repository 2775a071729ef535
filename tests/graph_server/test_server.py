"""The graph server's shell: what it answers, and how a run ends, well or badly, with nothing left running."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from common.errors import DorylusError, PeerClosed, ScheduleError, TaskCrashed
from common.passes import Pass, evaluate, train
from common.wire import messages
from graph_server import server as shell_module
from graph_server.backends import local_cpu
from graph_server.backends.base import TaskResult, TensorTask
from graph_server.schedule.events import Reason
from graph_server.schedule.scheduler import Scheduler
from tests.cluster.small_jobs import SmallJob, small_job
from tests.graph_server.shells import GENERATION, Shell, threads_left


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> SmallJob:
    """A directed graph in four intervals, one of them empty."""
    return small_job(tmp_path_factory.mktemp("graph"), 2, "gcn")


def during(scenario: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(scenario())


def refused(reply: messages.Message) -> str:
    assert isinstance(reply, messages.Refused), reply
    return reply.reason


# ---- answers


def test_other_generations_are_told_which_one_this_is(job: SmallJob):
    async def scenario() -> None:
        shell = Shell(job, 2)
        rows = np.zeros((1, 1), np.float32)
        for generation in (0, GENERATION - 1, GENERATION + 1):
            for message in (
                messages.GhostRows(generation, train(1), "source1", 0),
                messages.PullRows(generation, train(1), "logits", 0),
                messages.PullWeights(generation, 0),
            ):
                assert await shell.ask(message, rows) == messages.Superseded(GENERATION)

    during(scenario)


@pytest.mark.parametrize("message", [messages.Done(), messages.PullWeights(GENERATION, 0), messages.Rows()])
def test_what_a_graph_server_has_no_answer_to_is_refused(job: SmallJob, message: messages.Message):
    async def scenario() -> None:
        expected = f"a graph server has no answer to {type(message).__name__}"
        assert refused(await Shell(job).ask(message)) == expected

    during(scenario)


def ghosts_of(shell: Shell) -> tuple[int, np.ndarray]:
    """An interval that has ghosts here, and rows for all of them."""
    interval, place = next(iter(shell.held.partition.in_edges.ghost_blocks.items()))
    width = shell.held.store.array(train(1), "source1").shape[1]
    return interval, np.arange((place.stop - place.start) * width, dtype=np.float32).reshape(-1, width)


def test_ghosts_are_put_into_the_table_once_and_never_by_an_older_pass(job: SmallJob):
    async def scenario() -> None:
        shell = Shell(job, 2)
        interval, block = ghosts_of(shell)
        place = shell.held.store.ghost_block("source1", interval)

        async def send(pass_: Pass, rows: np.ndarray) -> np.ndarray:
            reply = await shell.ask(messages.GhostRows(GENERATION, pass_, "source1", interval), rows)
            assert reply == messages.Done()
            return shell.held.store.array(train(1), "source1")[place].copy()

        np.testing.assert_array_equal(await send(train(2), block), block)
        np.testing.assert_array_equal(await send(train(2), block + 1), block)
        np.testing.assert_array_equal(await send(train(1), block + 2), block)
        np.testing.assert_array_equal(await send(train(3), block + 3), block + 3)
        await send(evaluate(3), block)
        np.testing.assert_array_equal(shell.held.store.array(train(1), "source1")[place], block + 3)
        assert shell.server._events.qsize() == 3

    during(scenario)


@pytest.mark.parametrize(
    ("table", "spoil", "why"),
    [
        ("source7", lambda rows: rows, "no such table"),
        ("logits", lambda rows: rows, "no such table"),
        ("labels", lambda rows: rows, "no such table"),
        ("source1", lambda rows: rows[:-1], "of this interval it holds float32 ghosts"),
        ("source1", lambda rows: rows[:, :1], "of this interval it holds float32 ghosts"),
        ("source1", lambda rows: rows[:1, :1], "of this interval it holds float32 ghosts"),
        ("source1", lambda rows: rows.ravel(), "of this interval it holds float32 ghosts"),
        ("source1", lambda rows: rows.astype(np.float64), "of this interval it holds float32 ghosts"),
    ],
)
def test_ghosts_that_do_not_fit_are_refused_and_change_nothing(
    job: SmallJob, table: str, spoil: Callable[[np.ndarray], np.ndarray], why: str
):
    async def scenario() -> None:
        shell = Shell(job, 2)
        interval, block = ghosts_of(shell)
        before = shell.held.store.array(train(1), "source1").copy()
        reply = await shell.ask(messages.GhostRows(GENERATION, train(1), table, interval), spoil(block + 1))
        assert why in refused(reply)
        np.testing.assert_array_equal(shell.held.store.array(train(1), "source1"), before)
        assert shell.server._events.empty()
        assert await shell.ask(messages.GhostRows(GENERATION, train(1), "source1", interval), block) == messages.Done()

    during(scenario)


def test_ghosts_of_own_or_unknown_intervals_and_without_rows_are_refused(job: SmallJob):
    async def scenario() -> None:
        shell = Shell(job, 2)
        interval, block = ghosts_of(shell)
        own = shell.held.partition.own[0]
        for number in (own, job.num_intervals, 10**9):
            reply = await shell.ask(messages.GhostRows(GENERATION, train(1), "source1", number), block[:0])
            assert "holds" in refused(reply)
        message = messages.GhostRows(GENERATION, train(1), "source1", interval)
        assert "GhostRows with 0 buffers" in refused(await shell.ask(message))
        assert "GhostRows with 2 buffers" in refused(await shell.ask(message, block, block))
        assert shell.server._events.empty()

    during(scenario)


def test_an_interval_without_ghosts_here_is_announced_without_rows(job: SmallJob):
    async def scenario() -> None:
        shell = Shell(job, 4)
        store, partition = shell.held.store, shell.held.partition
        others = set(range(job.num_intervals)) - set(partition.own) - set(partition.in_edges.ghost_blocks)
        assert others, "the graph of this test has an empty interval elsewhere"
        message = messages.GhostRows(GENERATION, train(1), "source1", min(others))
        empty = store.array(train(1), "source1")[:0]
        assert await shell.ask(message, empty) == messages.Done()
        assert shell.server._events.qsize() == 1

    during(scenario)


def test_rows_of_own_intervals_are_given_and_all_else_is_refused(job: SmallJob):
    async def scenario() -> None:
        shell = Shell(job, 2)
        own = shell.held.partition.own[0]
        assert await shell.ask(messages.PullRows(GENERATION, evaluate(1), "logits", own)) == messages.Rows()
        for tensor, interval in (("nothing", own), ("logits", 10**6), ("logits", ghosts_of(shell)[0])):
            reply = await shell.ask(messages.PullRows(GENERATION, evaluate(1), tensor, interval))
            assert "holds no such tensor or interval" in refused(reply)

    during(scenario)


# ---- a run


def test_a_pass_is_walked_to_its_end(job: SmallJob):
    async def scenario() -> Shell:
        shell = Shell(job)
        assert await shell.run() is Reason.COMPLETED
        return shell

    shell = during(scenario)
    steps = len(job.programs.train.steps)
    assert {(record.interval, record.position) for record in shell.records} == {
        (interval, position) for interval in range(job.num_intervals) for position in range(steps)
    }
    assert len(shell.records) == steps * job.num_intervals
    assert all(r.created <= r.started <= r.ended <= r.received for r in shell.records)
    assert set(shell.parameters.reports) == set(range(job.num_intervals))
    assert sum(sums["loss_weight"] for sums in shell.parameters.reports.values()) == job.loss.total_weight
    # Gradients of both layers come from two tasks per interval.
    assert shell.parameters.gradients == 2 * job.num_intervals
    assert not threads_left()


@pytest.mark.parametrize("reason", [Reason.STOPPED, Reason.FAILED])
def test_the_clock_says_why_a_run_ends(job: SmallJob, reason: Reason):
    async def scenario() -> Reason:
        shell = Shell(job)
        shell.parameters.ended = reason.value.capitalize()
        return await shell.run()

    assert during(scenario) is reason


def fails(shell_of: Callable[[], Shell], expected: type[BaseException]) -> BaseException:
    """Runs until it fails; the error is bare, not in a group, and no thread outlives it."""

    async def scenario() -> None:
        shell = shell_of()
        with pytest.raises(expected) as raised:
            await shell.run()
        errors.append(raised.value)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing may run on"

    errors: list[BaseException] = []
    during(scenario)
    assert not threads_left()
    return errors[0]


def test_a_task_that_raises_ends_the_run_with_what_and_why(job: SmallJob, monkeypatch: pytest.MonkeyPatch):
    def broken(*task: object) -> None:
        raise ZeroDivisionError("a hole in the floor")

    monkeypatch.setattr(local_cpu, "compute", broken)
    error = fails(lambda: Shell(job), TaskCrashed)
    assert isinstance(error, TaskCrashed)
    assert error.what.startswith("ApplyVertex0+1 of interval ")
    assert error.what.endswith(" in train 1 raised ZeroDivisionError")
    assert "a hole in the floor" in error.why


class OneFailsOthersWait(local_cpu.Backend):
    """The first task fails while the others wait for their weights, which come right after."""

    name = "one_fails"
    tasks = 0

    async def run(self, task: TensorTask) -> TaskResult:
        self.tasks += 1
        if self.tasks == 1:
            await asyncio.sleep(0)
            raise TaskCrashed("the first task raised")
        await asyncio.sleep(0.01)
        return await super().run(task)


def test_the_first_error_is_raised_whatever_is_in_flight(job: SmallJob):
    """What waits is ended with it, and does not fail on a backend that is closed by then."""
    assert str(fails(lambda: Shell(job, make_backend=OneFailsOthersWait), TaskCrashed)) == "the first task raised"


class NeverDone(local_cpu.Backend):
    name = "never_done"

    async def run(self, task: TensorTask) -> TaskResult:
        if task.interval == 0:
            raise TaskCrashed("interval 0 raised")
        await asyncio.Event().wait()
        raise AssertionError


def test_a_task_that_never_ends_does_not_hold_up_the_failure_of_another(job: SmallJob):
    assert str(fails(lambda: Shell(job, make_backend=NeverDone), TaskCrashed)) == "interval 0 raised"


@pytest.mark.parametrize("stage", ["read_and_gather", "scatter_rows"])
def test_an_error_in_a_graph_stage_ends_the_run(job: SmallJob, monkeypatch: pytest.MonkeyPatch, stage: str):
    """Also one that is no error of ours."""

    def broken(*arguments: object, **options: object) -> None:
        raise IndexError("row 7 of 6")

    monkeypatch.setattr(shell_module, stage, broken)
    assert str(fails(lambda: Shell(job), IndexError)) == "row 7 of 6"


def test_a_parameter_server_that_is_gone_ends_the_run(job: SmallJob):
    def shell() -> Shell:
        made = Shell(job)
        made.network.leave("parameter0")
        return made

    assert "parameter0 is not there" in str(fails(shell, PeerClosed))


def test_a_graph_server_that_is_gone_ends_the_run(job: SmallJob):
    """graph1 never joined, so its ghosts cannot be sent."""
    assert "graph1 is not there" in str(fails(lambda: Shell(job, 2), PeerClosed))


@pytest.mark.parametrize("request_", [messages.PushGradients, messages.IntervalFinished, messages.AwaitClock])
def test_a_refusal_ends_the_run_with_its_reason(job: SmallJob, request_: type[messages.Message]):
    def shell() -> Shell:
        made = Shell(job)
        answer = made.parameters.answer

        async def refuse(peer: str, message: messages.AnyMessage, buffers: list[Any]) -> Any:
            if isinstance(message, request_):
                return messages.Refused("the gradient is not finite"), ()
            return await answer(peer, message, buffers)

        made.network.join("parameter0", refuse)
        return made

    assert "the gradient is not finite" in str(fails(shell, DorylusError))


def test_an_illegal_move_ends_the_run_with_the_story(job: SmallJob, monkeypatch: pytest.MonkeyPatch):
    def broken(scheduler: Scheduler, position: int) -> None:
        raise ScheduleError("interval 0, RUNNING, step 0: STARTED is illegal", why="its story: STARTED")

    monkeypatch.setattr(Scheduler, "_release", broken)
    assert "its story" in str(fails(lambda: Shell(job), ScheduleError))


def test_cancelling_a_run_leaves_nothing_behind(job: SmallJob):
    async def scenario() -> None:
        shell = Shell(job, make_backend=NeverDone, mode="sync")
        shell.network.leave("parameter0")
        shell.network.join("parameter0", _silent)
        running = asyncio.create_task(shell.run())
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() == {asyncio.current_task()}

    during(scenario)
    assert not threads_left()


async def _silent(peer: str, message: messages.AnyMessage, buffers: list[Any]) -> Any:
    await asyncio.Event().wait()

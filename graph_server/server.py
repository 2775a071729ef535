"""The graph server's shell: it owns the only loop, and decides nothing.

Take an event, ask the scheduler, start each command as a task of one group; every such coroutine ends by putting an
event. Graph stages run in a pool of threads, tensor tasks on the backend.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from common.errors import DorylusError, first_error
from common.passes import Pass
from common.saga.arrays import Array
from common.saga.compute import TaskOutputs
from common.saga.program import Step
from common.trace import StepRecord
from common.wire import messages
from common.wire.channel import Reply, exactly
from common.wire.clients import GraphClient, ParameterClient
from common.wire.tasks import together
from graph_server.backends.base import Backend, TaskResult, TensorTask
from graph_server.cores import Cores
from graph_server.schedule.events import (
    Apply,
    ClockAdvanced,
    ClockStopped,
    Command,
    Event,
    Finish,
    Gather,
    GhostRowsArrived,
    IntervalMayBegin,
    IntervalsMayEnd,
    Reason,
    ReportFinished,
    Scatter,
    StageDone,
    TaskFailed,
)
from graph_server.schedule.scheduler import Scheduler
from graph_server.stages.apply import take_outputs, tensor_task
from graph_server.stages.gather import is_small, read_and_gather, row_runs
from graph_server.stages.held import Held
from graph_server.stages.judge import judged_rows
from graph_server.stages.read_ages import ReadAges
from graph_server.stages.scatter import Outgoing, outgoing, scatter_rows
from graph_server.step_recorder import StepRecorder

SMALL_BLOCK = 30_000
"""Publishing so many values takes about 0.05 ms, as long as a thread takes to wake."""
Result = TypeVar("Result")
REASONS = {"Completed": Reason.COMPLETED, "Stopped": Reason.STOPPED, "Failed": Reason.FAILED}


@dataclass(frozen=True)
class Links:
    """To the other roles. `announce_to`: peers that want to hear of every Scatter, rows or not (sync mode)."""

    parameters: ParameterClient
    graph: GraphClient
    announce_to: tuple[int, ...] = ()


@dataclass(frozen=True)
class _TaskDone:
    """A tensor task's result, not yet taken: the scheduler says whether it is the first."""

    event: StageDone
    task: TensorTask
    result: TaskResult
    created: float


@dataclass(frozen=True)
class ShellOptions:
    """threads: cores for graph stages; record: takes a record of each step; cores: None: nobody else asks."""

    threads: int
    record: Callable[[StepRecord], None] = lambda _: None
    generation: int = 1
    cores: Cores | None = None


class GraphServer:
    def __init__(
        self, held: Held, scheduler: Scheduler, *, backend: Backend, links: Links, options: ShellOptions
    ) -> None:
        self._held, self._scheduler, self._generation = held, scheduler, options.generation
        self._backend, self._links = backend, links
        self._cores = options.cores or Cores(options.threads)
        self._recorder = StepRecorder(held, options.record)
        self._events: asyncio.Queue[Event | _TaskDone] = asyncio.Queue()
        self._pool = ThreadPoolExecutor(options.threads, thread_name_prefix="graph")
        self._sums: dict[tuple[Pass, int], Mapping[str, float]] = {}
        self._tasks = self._in_flight = 0
        self._ages = ReadAges()

    @property
    def counts(self) -> dict[str, int]:
        """What it and its backend counted, for the summary."""
        partition = self._held.partition
        held = {"intervals": len(partition.own), "ghosts": partition.in_edges.num_ghosts}
        waited = {**self._scheduler.waited, "table": self._held.store.seconds_waited}
        waits = {f"{what}_wait_ms": round(1000 * seconds) for what, seconds in waited.items()}
        return {**held, "tensor_tasks": self._tasks, **self._ages.counts, **waits, **self._backend.counts}

    @property
    def kernels(self) -> frozenset[str]:
        """Of whatever runs its tensor tasks elsewhere."""
        return self._backend.kernels

    @property
    def tasks_in_flight(self) -> int:
        return self._in_flight

    async def run(self) -> Reason:
        """Until the training clock ends the job. Raises the error of what failed."""
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(self._watch_clock()), group.create_task(self._backend.serve())]
                finish = await self._loop(group)
                if finish.error is not None:
                    raise finish.error  # here, inside: whatever is in flight ends with it
                await self._backend.close()
                for task in beside:
                    task.cancel()
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors
        finally:
            self._pool.shutdown(wait=True, cancel_futures=True)
            await self._backend.close()
        return finish.reason

    async def answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        if getattr(message, "generation", self._generation) != self._generation:
            return messages.Superseded(self._generation), ()
        match message:
            case messages.GhostRows(_, pass_, table, interval):
                (block,) = exactly(buffers, 1, "GhostRows")
                if self._held.store.accept_ghosts(pass_, table, interval, block):
                    self._events.put_nowait(GhostRowsArrived(pass_, table, interval))
                return messages.Done(), ()
            case messages.PullRows(_, pass_, tensor, interval):
                return messages.Rows(), [self._held.store.own_rows(pass_, tensor, interval)]
        if (reply := await self._backend.answer(message, buffers)) is not None:
            return reply
        return messages.Refused(f"a graph server has no answer to {type(message).__name__}"), ()

    async def _loop(self, group: asyncio.TaskGroup) -> Finish:
        while True:
            event = await self._events.get()
            if isinstance(event, _TaskDone):
                self._take(event)
                event = event.event
            for command in self._scheduler.handle(event, time.monotonic()):
                if isinstance(command, Finish):
                    return command
                group.create_task(self._carry_out(command))

    async def _watch_clock(self) -> None:
        seen = 0
        while True:
            clock = await self._links.parameters.clock(seen)
            seen = clock.ticks
            if clock.ended is not None:
                self._events.put_nowait(ClockStopped(REASONS[clock.ended]))
                return
            if clock.ends_below is not None:
                self._events.put_nowait(IntervalsMayEnd(clock.ends_below))
            if clock.pass_ is not None:
                self._events.put_nowait(ClockAdvanced(clock.pass_))
            for grant in clock.grants:
                self._events.put_nowait(IntervalMayBegin(grant.pass_, grant.interval, grant.exact_until))

    async def _carry_out(self, command: Command) -> None:
        created = time.monotonic()
        match command:
            case Gather(pass_, position, interval):
                await self._gather(pass_, position, interval, created)
            case Scatter(pass_, position, interval):
                await self._scatter(pass_, position, interval, created)
            case Apply(pass_, position, interval, attempt):
                await self._apply(StageDone(pass_, position, interval), attempt, created)
            case ReportFinished(pass_, interval):
                sums, rows = self._sums.pop((pass_, interval), {}), judged_rows(self._held, pass_, interval)
                await self._links.parameters.report(pass_, interval, sums, rows)

    def _step(self, pass_: Pass, position: int) -> Step:
        return self._scheduler.program(pass_)[position]

    async def _gather(self, pass_: Pass, position: int, interval: int, created: float) -> None:
        step = self._step(pass_, position)
        rows, edges = self._held.partition.rows[interval], self._held.edges(backward=step.backward)
        width = self._held.store.array(pass_, step.reads[0]).shape[1]
        started = time.monotonic()
        small = is_small(self._held, step, rows, width)
        oldest = self._scheduler.oldest_epoch(interval)
        read = partial(read_and_gather, self._held, pass_, step, interval=interval, oldest=oldest)
        for read_lags in await together(self._call(small, read, run) for run in row_runs(edges, rows, width)):
            self._ages.add(read_lags)
        self._done(StageDone(pass_, position, interval), step, created, started)

    async def _scatter(self, pass_: Pass, position: int, interval: int, created: float) -> None:
        step, started = self._step(pass_, position), time.monotonic()
        rows = self._held.partition.rows[interval]
        width = self._held.store.array(pass_, step.writes[0]).shape[1]
        small = (rows.stop - rows.start) * width < SMALL_BLOCK
        block = await self._call(small, scatter_rows, self._held, pass_, step, interval)
        parcels = outgoing(self._held, step, interval, block)
        told = {parcel.peer for parcel in parcels}
        parcels += [Outgoing(p, step.writes[0], block[:0]) for p in self._links.announce_to if p not in told]
        sent = await together(self._send(pass_, interval, parcel) for parcel in parcels)
        self._done(StageDone(pass_, position, interval), step, created, started, ghosts=sum(sent))

    async def _call(self, small: bool, stage: Callable[..., Result], *args: object) -> Result:
        """In the pool; what is small is done here, for a thread takes longer to wake than it takes."""
        with self._cores.work():
            if small:
                return stage(*args)
            return await asyncio.get_running_loop().run_in_executor(self._pool, stage, *args)

    async def _send(self, pass_: Pass, interval: int, parcel: Outgoing) -> int:
        return await self._links.graph.send_ghosts(
            parcel.peer, parcel.block, pass_=pass_, table=parcel.table, interval=interval
        )

    def _done(self, event: StageDone, step: Step, created: float, started: float, *, ghosts: int = 0) -> None:
        ended = time.monotonic()
        self._recorder.graph_step(event, step, (created, started, ended, ended), ghosts=ghosts)
        self._events.put_nowait(event)

    async def _apply(self, event: StageDone, attempt: int, created: float) -> None:
        step = self._step(event.pass_, event.position)
        task = tensor_task(
            self._held, event.pass_, step, position=event.position, interval=event.interval, attempt=attempt
        )

        def give(result: TaskResult) -> None:
            self._events.put_nowait(_TaskDone(event, task, result, created))

        self._in_flight += 1
        try:
            result = await self._backend.run(replace(task, give=give))
        except DorylusError as error:
            self._events.put_nowait(TaskFailed(event.pass_, event.position, event.interval, error))
            return
        finally:
            self._in_flight -= 1
        give(result)  # one that was given before counts once

    def _take(self, done: _TaskDone) -> None:
        if not self._scheduler.accepts(done.event):
            return
        self._tasks += 1
        take_outputs(self._held, done.task, done.result.outputs)
        self._keep_sums(done.event, done.result.outputs)
        times = (done.created, done.result.started, done.result.ended, time.monotonic())
        place = done.result.place or self._backend.name
        self._recorder.tensor_task(done.event, done.task, done.result, times, backend=place)

    def _keep_sums(self, event: StageDone, outputs: TaskOutputs) -> None:
        if outputs.sums:
            self._sums[event.pass_, event.interval] = outputs.sums

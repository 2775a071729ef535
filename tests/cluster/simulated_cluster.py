"""A cluster in miniature: graph servers and parameter servers without asyncio, threads or clock.

                        the bag: whatever may happen next
        command · done · ghosts · attempt · lost · gradients · report · news
                                     |
              the die draws one of them, or one of the past once more
                                     |
               +---------------------+----------------------+
               v                                            v
    graph servers: Scheduler, Held              parameter servers: WeightStore, TrainingClock
    commands, rows, results, gradients          versions, and news of passes
               |                                            |
               +------------- back into the bag ------------+

Kernels, tensor tasks and deciders are the real ones; only their shells are replaced. Nothing waits for anything but
what the deciders demand, so this allows more orders than any network does.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.passes import Pass
from common.saga.compute import TaskOutputs
from common.saga.program import Step
from graph_server.backends.base import TensorTask
from graph_server.schedule.events import (
    Apply,
    Command,
    Event,
    Finish,
    Gather,
    GhostRowsArrived,
    ReportFinished,
    Scatter,
    StageDone,
    TaskLost,
)
from graph_server.schedule.scheduler import Mode, Scheduler
from graph_server.stages.apply import take_outputs, tensor_task
from graph_server.stages.gather import WORK_PER_CALL, gather_rows, row_runs
from graph_server.stages.scatter import outgoing, scatter_rows
from parameter_server.epoch_metrics import EpochMetrics
from parameter_server.weight_store import TooLate
from tests.cluster.bag import Bag
from tests.cluster.simulated_parameter_servers import ParameterServers
from tests.cluster.small_jobs import SmallJob

MANY = 100_000
"""Happenings of one run; the largest takes a tenth."""


@dataclass(frozen=True)
class Layout:
    """How the cluster looks. `seed`: of the die; None: everything happens once, in the order in which it came up."""

    num_graph_servers: int = 1
    num_parameter_servers: int = 1
    mode: Mode = "pipe"
    seed: int | None = None
    dtype: Any = np.float32


@dataclass(frozen=True)
class Outcome:
    """What must not depend on the layout, to the last bit."""

    weights: dict[str, bytes]
    logits: bytes
    metrics: list[EpochMetrics]


def simulate(job: SmallJob, layout: Layout) -> Outcome:
    """Train to the end. Raises AssertionError with every interval's story if the cluster comes to a standstill."""
    return _Cluster(job, layout).run()


class _Cluster:
    def __init__(self, job: SmallJob, layout: Layout) -> None:
        self.job, self.layout = job, layout
        self.bag = Bag(None if layout.seed is None else random.Random(layout.seed))
        self.parameters = ParameterServers(
            job, layout.num_parameter_servers, bag=self.bag, dtype=layout.dtype, tell_all=self._tell_all
        )
        self.graph = [_GraphServer(self, number) for number in range(layout.num_graph_servers)]

    def run(self) -> Outcome:
        self.parameters.start()
        for _ in range(MANY):
            if not self.bag.coming:
                break
            self.bag.draw().happen()
        assert all(server.finished for server in self.graph), self._stories()
        return self._outcome()

    def _tell_all(self, event: Event) -> None:
        for server in self.graph:
            self.bag.put("news", server.tell, event)

    def _outcome(self) -> Outcome:
        last = self.parameters.last
        assert last is not None
        weights = {name: rows.tobytes() for name, rows in sorted(self.parameters.weights(last.epoch).items())}
        return Outcome(weights, self._logits(last), self.parameters.metrics)

    def _logits(self, pass_: Pass) -> bytes:
        blocks = {i: s.held.store.rows(pass_, "logits", i) for s in self.graph for i in s.held.partition.own}
        return np.concatenate([blocks[interval] for interval in sorted(blocks)]).tobytes()

    def _stories(self) -> str:
        lines = [f"graph server {s.number}: {line}" for s in self.graph for line in s.scheduler.stories()]
        return "\n".join(["a standstill", *lines])


class _GraphServer:
    def __init__(self, cluster: _Cluster, number: int) -> None:
        job, layout, die = cluster.job, cluster.layout, cluster.bag.die
        self.cluster, self.number, self.bag = cluster, number, cluster.bag
        self.held = job.held(layout.num_graph_servers, number, layout.dtype)
        partition = self.held.partition
        self.scheduler = Scheduler(
            job.programs,
            feeds_in=partition.in_edges.feeds,
            feeds_out=partition.out_edges.feeds,
            num_intervals=job.num_intervals,
            mode=layout.mode,
            places={"graph": die.randint(1, 3), "tensor": die.randint(1, 3)} if die else {"graph": 1, "tensor": 1},
        )
        self.sums: dict[tuple[Pass, int], dict[str, float]] = {}
        self.finished = False

    def tell(self, event: Event) -> None:
        for command in self.scheduler.handle(event):
            if isinstance(command, Apply):
                self._apply(command)
            else:
                self.bag.put("command", self.carry_out, command)
        self.scheduler.validate()

    def carry_out(self, command: Command) -> None:
        match command:
            case Gather():
                self._gather(command)
            case Scatter():
                self._scatter(command)
            case ReportFinished(pass_, interval):
                self.bag.put("report", self.cluster.parameters.report, pass_, interval, self.sums[pass_, interval])
            case Finish():
                self.finished = True

    def _step(self, command: Gather | Apply | Scatter) -> Step:
        return self.scheduler.program(command.pass_)[command.position]

    def _gather(self, command: Gather) -> None:
        step = self._step(command)
        edges, rows = self.held.edges(backward=step.backward), self.held.partition.rows[command.interval]
        # Now and then row by row: no split of an interval may change a bit.
        for run in row_runs(edges, rows, WORK_PER_CALL if self.bag.strikes() else 1):
            gather_rows(self.held, command.pass_, step, run)
        self.bag.put("done", self.tell, StageDone(command.pass_, command.position, command.interval))

    def _scatter(self, command: Scatter) -> None:
        pass_, interval, step = command.pass_, command.interval, self._step(command)
        block = scatter_rows(self.held, pass_, step, interval)
        blocks = {parcel.peer: parcel.block for parcel in outgoing(self.held, step, interval, block)}
        for peer in self.cluster.graph:
            if peer is not self and (peer.number in blocks or self.cluster.layout.mode == "sync"):
                sent = blocks.get(peer.number, block[:0])
                self.bag.put("ghosts", peer.receive, pass_, step.writes[0], interval, sent)
        self.bag.put("done", self.tell, StageDone(pass_, command.position, interval))

    def receive(self, pass_: Pass, table: str, interval: int, block: np.ndarray) -> None:
        if self.held.store.accept_ghosts(pass_, table, interval, block):
            self.tell(GhostRowsArrived(pass_, table, interval))

    def _apply(self, command: Apply) -> None:
        attempt = self._attempt(command)
        self.bag.put("attempt", self._go_on, attempt)
        if self.bag.strikes():
            self.bag.put("lost", self._lose, TaskLost(command.pass_, command.position, command.interval), attempt)

    def _attempt(self, command: Apply) -> Iterator[None]:
        """Between two steps of an attempt anything may happen; its gradients go first, its outputs last."""
        pass_, interval, step = command.pass_, command.interval, self._step(command)
        event = StageDone(pass_, command.position, interval)
        task = tensor_task(
            self.held, pass_, step, position=command.position, interval=interval, attempt=command.attempt
        )
        try:
            outputs = self._compute(task)
        except TooLate:
            assert not self.scheduler.accepts(event)
            return
        for number in range(len(self.cluster.parameters) if outputs.gradients else 0):
            self.cluster.parameters.push(number, task, outputs.gradients)
            yield
        self.bag.put("done", self._take, event, task, outputs)

    def _compute(self, task: TensorTask) -> TaskOutputs:
        weights = self.cluster.parameters.weights(task.pass_.weights_version)
        return self.cluster.job.computed(task, weights)

    def _go_on(self, attempt: Iterator[None]) -> None:
        for _ in attempt:
            self.bag.put("attempt", self._go_on, attempt)
            return

    def _lose(self, event: TaskLost, attempt: Any) -> None:
        """Given up: it is dead, or only seems so and will hand in its result late."""
        assert self.bag.die is not None
        if self.bag.die.random() < 0.5:
            attempt.close()
        self.tell(event)

    def _take(self, event: StageDone, task: TensorTask, outputs: TaskOutputs) -> None:
        if self.scheduler.accepts(event):
            take_outputs(self.held, task, outputs)
            if outputs.sums:
                self.sums[event.pass_, event.interval] = outputs.sums
        self.tell(event)

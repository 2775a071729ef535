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
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from common.epoch_metrics import EpochMetrics
from common.passes import Pass, PassKind
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
    IntervalMayBegin,
    ReportFinished,
    Scatter,
    StageDone,
    TaskLost,
)
from graph_server.schedule.scheduler import Mode, Scheduler
from graph_server.stages.apply import take_outputs, tensor_task
from graph_server.stages.gather import WORK_PER_CALL, read_and_gather, row_runs
from graph_server.stages.scatter import outgoing, scatter_rows
from parameter_server.weight_store import TooLate
from tests.cluster.bag import Bag
from tests.cluster.simulated_parameter_servers import ParameterServers, Saved
from tests.cluster.small_jobs import SmallJob

MANY = 100_000
"""Happenings of one run; the largest takes a tenth."""


@dataclass(frozen=True)
class Layout:
    """How the cluster looks. `seed`: of the die; None: everything happens once, in the order in which it came up.
    `kills`: how often all of it is killed, to go on from its last checkpoint with a graph server less if there is one.
    """

    num_graph_servers: int = 1
    num_parameter_servers: int = 1
    mode: Mode = "pipe"
    staleness: int = 0
    weight_update: str = "epoch"
    gradient_window: int | None = None
    kills: int = 0
    seed: int | None = None
    dtype: Any = np.float32


@dataclass(frozen=True)
class Outcome:
    """What must not depend on the layout, to the last bit."""

    weights: dict[str, bytes]
    logits: bytes
    metrics: list[EpochMetrics]
    reads: Counter[int] = field(default_factory=Counter, compare=False)
    """By how many epochs the rows were older than the pass that read them."""
    generations: int = field(default=1, compare=False)


def simulate(job: SmallJob, layout: Layout) -> Outcome:
    """Train to the end. Raises AssertionError with every interval's story if the cluster comes to a standstill."""
    return World(job, layout).run()


class World:
    """The bag, and the cluster of the present generation; of earlier ones, what they had sent may still arrive."""

    def __init__(self, job: SmallJob, layout: Layout) -> None:
        self.job, self.layout = job, layout
        self.bag = Bag(None if layout.seed is None else random.Random(layout.seed))
        self.kills = sorted(self.bag.die.choices(range(20, 600), k=layout.kills)) if self.bag.die else []
        self.reads, self.generation, self.metrics = Counter[int](), 1, list[EpochMetrics]()
        self.cluster = _Cluster(self, layout, None)

    def run(self) -> Outcome:
        self.cluster.start()
        for count in range(MANY):
            if not self.bag.coming:
                break
            if self.kills and count >= self.kills[0]:
                self.kills.pop(0)
                self._begin_again()
            self.bag.draw().happen()
        assert all(server.finished for server in self.cluster.graph), self.cluster.stories()
        return self.cluster.outcome()

    def hear(self, metrics: EpochMetrics) -> None:
        """An epoch comes again after a restart, its last evaluation, too."""
        self.metrics = [*(known for known in self.metrics if known.epoch < metrics.epoch), metrics]

    def _begin_again(self) -> None:
        """New processes, from the last checkpoint."""
        saved, layout = self.cluster.parameters.saved, self.cluster.layout
        self.cluster.is_alive = False
        self.generation += 1
        fewer = max(1, layout.num_graph_servers - 1)
        self.cluster = _Cluster(self, replace(layout, num_graph_servers=fewer), saved)
        self.cluster.start()


class _Cluster:
    def __init__(self, world: World, layout: Layout, saved: Saved | None) -> None:
        self.world, self.job, self.layout, self.bag = world, world.job, layout, world.bag
        self.generation, self.finished_epochs = world.generation, dict[int, int]()
        self.is_alive = True
        self.parameters = ParameterServers(self, saved)
        self.graph = [_GraphServer(self, number) for number in range(layout.num_graph_servers)]

    def start(self) -> None:
        self.parameters.start()

    def tell_all(self, event: Event) -> None:
        if isinstance(event, IntervalMayBegin):
            self._check_epoch_gate(event)
        for server in self.graph:
            self.bag.put("news", server.tell, event)

    def finished(self, pass_: Pass, interval: int) -> None:
        if pass_.kind is PassKind.TRAIN:
            self.finished_epochs[interval] = max(pass_.epoch, self.finished_epochs.get(interval, 0))

    def _check_epoch_gate(self, event: IntervalMayBegin) -> None:
        """By what the graph servers have done, whatever the training clock believes."""
        first = event.exact_until - 1
        slowest = min(self.finished_epochs.get(interval, first) for interval in range(self.job.num_intervals))
        assert event.pass_.epoch <= slowest + 1 + self.layout.staleness, "an interval runs too far ahead"
        if self.layout.weight_update == "epoch":
            assert event.pass_.weights_version >= event.pass_.epoch - 1 - self.layout.staleness, "weights too old"

    def outcome(self) -> Outcome:
        last = self.parameters.last
        assert last is not None
        newest = self.parameters.weights(self.parameters.version)
        weights = {name: rows.tobytes() for name, rows in sorted(newest.items())}
        world = self.world
        return Outcome(weights, self._logits(last), world.metrics, world.reads, world.generation)

    def _logits(self, pass_: Pass) -> bytes:
        blocks = {i: s.held.store.rows(pass_, "logits", i) for s in self.graph for i in s.held.partition.own}
        return np.concatenate([blocks[interval] for interval in sorted(blocks)]).tobytes()

    def stories(self) -> str:
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
            feeds=(partition.in_edges.feeds, partition.out_edges.feeds),
            num_intervals=job.num_intervals,
            mode=layout.mode,
            staleness=layout.staleness,
            places={"graph": die.randint(1, 3), "tensor": die.randint(1, 3)} if die else {"graph": 1, "tensor": 1},
        )
        self.sums: dict[tuple[Pass, int], dict[str, float]] = {}
        self.finished = False

    def tell(self, event: Event) -> None:
        if not self.cluster.is_alive:
            return
        for command in self.scheduler.handle(event):
            if isinstance(command, Apply):
                self._apply(command)
            else:
                self.bag.put("command", self.carry_out, command)
        self.scheduler.validate()

    def carry_out(self, command: Command) -> None:
        if not self.cluster.is_alive:
            return
        match command:
            case Gather():
                self._gather(command)
            case Scatter():
                self._scatter(command)
            case ReportFinished(pass_, interval):
                self.cluster.finished(pass_, interval)
                self.bag.put("report", self.cluster.parameters.report, pass_, interval, self.sums[pass_, interval])
            case Finish():
                self.finished = True

    def _step(self, command: Gather | Apply | Scatter) -> Step:
        return self.scheduler.program(command.pass_)[command.position]

    def _gather(self, command: Gather) -> None:
        step = self._step(command)
        interval, pass_ = command.interval, command.pass_
        edges, rows = self.held.edges(backward=step.backward), self.held.partition.rows[interval]
        oldest = self.scheduler.oldest_epoch(interval)
        # Now and then row by row: no split of an interval may change a bit.
        for run in row_runs(edges, rows, WORK_PER_CALL if self.bag.strikes() else 1):
            lags = read_and_gather(self.held, pass_, step, run, interval=interval, oldest=oldest)
            self.cluster.world.reads.update([] if lags is None else lags.tolist())
        self.bag.put("done", self.tell, StageDone(pass_, command.position, interval))

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
        if self.cluster.is_alive and self.held.store.accept_ghosts(pass_, table, interval, block):
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
            while (weights := self.cluster.parameters.weights(pass_.weights_version, pass_.missing_updates)) is None:
                yield
        except TooLate:
            assert not self.scheduler.accepts(event)
            return
        outputs = self.cluster.job.computed(task, weights)
        for number in range(len(self.cluster.parameters) if outputs.gradients else 0):
            # a task of an earlier generation meets the present one's parameter servers
            present = self.cluster.world.cluster.parameters
            present.push(number, task, outputs.gradients, generation=self.cluster.generation)
            yield
        self.bag.put("done", self._take, event, task, outputs)

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

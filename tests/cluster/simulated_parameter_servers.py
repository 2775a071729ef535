"""The parameter servers of a simulated cluster: real weight stores and the real training clock, joined by calls.

What a network may repeat is put into the bag once more; a version is kept everywhere before the pass after it opens.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.passes import Pass
from common.sharding import join, shard
from graph_server.backends.base import TensorTask
from graph_server.schedule.events import ClockAdvanced, ClockStopped, IntervalMayBegin, IntervalsMayEnd, Reason
from parameter_server.checkpoint_files import join_states, shard_state
from parameter_server.clock_events import (
    BestChanged,
    CheckpointDue,
    ClockEvent,
    ClockSettings,
    EpochEnded,
    IntervalsMayBegin,
    MayEnd,
    PassOpened,
    Stopped,
)
from parameter_server.initial_weights import initial_weights
from parameter_server.interval_store import IntervalSteps, IntervalWeightStore, Place
from parameter_server.optimizers import Adam
from parameter_server.predicting_store import PredictingWeightStore
from parameter_server.saved_state import ClockRecord, Resumed, ShardState
from parameter_server.training_clock import TrainingClock
from parameter_server.weight_store import GradientKey, WeightStore


@dataclass(frozen=True)
class Saved:
    """A checkpoint, all shards joined."""

    state: ShardState
    clock: ClockRecord


class ParameterServers:
    """Of one generation of a simulated cluster."""

    def __init__(self, cluster: Any, saved: Saved | None) -> None:
        job, layout = cluster.job, cluster.layout
        self._cluster, self._bag, self._generation = cluster, cluster.bag, cluster.generation
        self.saved, self._count = saved, layout.num_parameter_servers
        self._told: list[deque[tuple[int, list[Place]]]] = [deque() for _ in range(self._count)]
        self._stores = [self._store(number) for number in range(self._count)]
        settings = ClockSettings(
            num_epochs=job.num_epochs,
            eval_frequency=job.eval_frequency,
            staleness=layout.staleness if layout.mode == "async" else None,
            checkpoint_frequency=3 if layout.mode == "async" else 2,
            gradient_window=layout.gradient_window,
        )
        self._clock = TrainingClock(settings, job.num_intervals, resumed=None if saved is None else saved.clock)
        self.last: Pass | None = None
        """The newest pass."""

    def __len__(self) -> int:
        return len(self._stores)

    @property
    def version(self) -> int:
        return self._stores[0].version

    def start(self) -> None:
        self._obey(self._clock.start())

    def weights(self, version: int, missing: int = 0) -> dict[str, np.ndarray] | None:
        """None if a shard has not reached it. Raises TooLate if the version is gone."""
        shards = [store.pull(version, missing) for store in self._stores]
        return None if None in shards else join([rows for rows in shards if rows is not None])

    def push(self, number: int, task: TensorTask, gradients: dict[str, np.ndarray], *, generation: int) -> None:
        """One parameter server's rows of a task's gradients; any of them may come again later."""
        rows = shard(gradients, len(self), number)
        for name in sorted(rows):
            key = GradientKey(generation, task.pass_, str(task.step), task.interval, name)
            self._count_gradient(number, key, rows[name])
            if self._bag.strikes():
                self._bag.put("gradients", self._count_gradient, number, key, rows[name])

    def report(self, pass_: Pass, interval: int, sums: dict[str, float]) -> None:
        if self._cluster.is_alive:
            self._obey(self._clock.interval_finished(pass_, interval, sums, newest=self.version))

    def _store(self, number: int) -> WeightStore:
        job, layout = self._cluster.job, self._cluster.layout
        rows = shard(initial_weights(job.programs.model.parameters(), job.seed, layout.dtype), self._count, number)
        resumed = None
        if self.saved is not None:
            resumed = Resumed(shard_state(self.saved.state, self._count, number), self.saved.clock)
        common = {"generation": self._generation, "staleness": layout.staleness, "resumed": resumed}
        if layout.weight_update == "epoch":
            return PredictingWeightStore(rows, Adam(0.05, 5e-4), job.num_intervals, **common)
        scales = [1.0 + interval if interval != 1 else 0.0 for interval in range(job.num_intervals)]
        steps = IntervalSteps(Adam(0.05, 5e-4 / job.num_intervals), scales, leads=number == 0)
        return IntervalWeightStore(rows, Adam(0.05, 5e-4), steps, **common)

    def _count_gradient(self, number: int, key: GradientKey, rows: np.ndarray) -> None:
        self._stores[number].push(key, rows)
        self._tell_line()

    def _tell_line(self) -> None:
        leader = self._stores[0]
        if isinstance(leader, IntervalWeightStore):
            place, entries = leader.news()
            for number in range(1, len(self) if entries else 1):
                self._told[number].append((place, entries))
                self._bag.put("line", self._hear, number)

    def _hear(self, number: int) -> None:
        """In order, for the next is told when this one has been heard; any may be told again."""
        told, follower = self._told[number], self._stores[number]
        assert isinstance(follower, IntervalWeightStore)
        if told:
            place, entries = told.popleft()
            follower.line_up(place, entries)
            if self._bag.strikes():
                self._bag.put("line", follower.line_up, place, entries)

    def _obey(self, events: list[ClockEvent]) -> None:
        for event in events:
            match event:
                case EpochEnded(metrics):
                    self._cluster.world.hear(metrics)
                case BestChanged(version, previous):
                    self._keep(version, previous)
                case CheckpointDue(record):
                    for number in range(1, len(self)):
                        while self._told[number]:
                            self._hear(number)
                    self.saved = Saved(join_states([store.state() for store in self._stores]), record)
                case PassOpened(pass_):
                    self.last = pass_
                    self._cluster.tell_all(ClockAdvanced(pass_))
                case MayEnd(ends_below):
                    self._cluster.tell_all(IntervalsMayEnd(ends_below))
                case IntervalsMayBegin(grants, exact_until):
                    self._grant(grants, exact_until)
                case Stopped():
                    self._cluster.tell_all(ClockStopped(Reason.COMPLETED))

    def _grant(self, grants: tuple[tuple[int, Pass], ...], exact_until: int) -> None:
        leader = self._stores[0]
        for interval, pass_ in grants:
            if isinstance(leader, IntervalWeightStore):
                assert leader.begin(interval, pass_.epoch) == pass_.weights_version
            self._cluster.tell_all(IntervalMayBegin(pass_, interval, exact_until))
        self._tell_line()

    def _keep(self, version: int, previous: int | None) -> None:
        for store in self._stores:
            store.keep(version)
            if previous is not None:
                store.release(previous)

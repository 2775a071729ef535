"""The parameter servers of a simulated cluster: real weight stores and the real training clock, joined by calls.

What a network may repeat is put into the bag once more; a version is kept everywhere before the pass after it opens.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from common.passes import Pass
from common.sharding import join, shard
from graph_server.backends.base import TensorTask
from graph_server.schedule.events import ClockAdvanced, ClockStopped, Event, Reason
from parameter_server.epoch_metrics import EpochMetrics
from parameter_server.initial_weights import initial_weights
from parameter_server.optimizers import Adam
from parameter_server.training_clock import (
    BestChanged,
    ClockEvent,
    ClockSettings,
    EpochEnded,
    PassOpened,
    Stopped,
    TrainingClock,
)
from parameter_server.weight_store import GradientKey, WeightStore
from tests.cluster.bag import Bag
from tests.cluster.small_jobs import SmallJob


class ParameterServers:
    """tell_all: the training clock's news go to every graph server."""

    def __init__(self, job: SmallJob, count: int, *, bag: Bag, dtype: Any, tell_all: Callable[[Event], None]) -> None:
        weights = initial_weights(job.programs.model.parameters(), job.seed, dtype)
        self._stores = [
            WeightStore(shard(weights, count, number), Adam(0.05, 5e-4), job.num_intervals) for number in range(count)
        ]
        settings = ClockSettings(num_epochs=job.num_epochs, eval_frequency=job.eval_frequency)
        self._clock = TrainingClock(settings, job.num_intervals)
        self._bag, self._tell_all = bag, tell_all
        self.metrics: list[EpochMetrics] = []
        self.last: Pass | None = None
        """The newest pass."""

    def __len__(self) -> int:
        return len(self._stores)

    def start(self) -> None:
        self._obey(self._clock.start())

    def weights(self, version: int) -> dict[str, np.ndarray]:
        """Raises TooLate if the version is gone."""
        shards = [store.pull(version) for store in self._stores]
        assert None not in shards, f"version {version} was asked for before it was there"
        return join([rows for rows in shards if rows is not None])

    def push(self, number: int, task: TensorTask, gradients: dict[str, np.ndarray]) -> None:
        """One parameter server's rows of a task's gradients; any of them may come again later."""
        rows = shard(gradients, len(self), number)
        for name in sorted(rows):
            key = GradientKey(1, task.pass_, str(task.step), task.interval, name)
            self._stores[number].push(key, rows[name])
            if self._bag.strikes():
                self._bag.put("gradients", self._stores[number].push, key, rows[name])

    def report(self, pass_: Pass, interval: int, sums: dict[str, float]) -> None:
        self._obey(self._clock.interval_finished(pass_, interval, sums))

    def _obey(self, events: list[ClockEvent]) -> None:
        for event in events:
            match event:
                case EpochEnded(metrics):
                    self.metrics.append(metrics)
                case BestChanged(version, previous):
                    self._keep(version, previous)
                case PassOpened(pass_):
                    self.last = pass_
                    self._tell_all(ClockAdvanced(pass_))
                case Stopped():
                    self._tell_all(ClockStopped(Reason.COMPLETED))

    def _keep(self, version: int, previous: int | None) -> None:
        for store in self._stores:
            store.keep(version)
            if previous is not None:
                store.release(previous)

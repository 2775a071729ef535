"""The parameter server's shell: it answers requests from its shard of the weights; number 0 also keeps the training
clock. It decides nothing itself.
"""

import asyncio
from collections.abc import Callable

import msgspec

from common.saga.arrays import Array
from common.wire import messages
from common.wire.channel import Reply, exactly
from common.wire.clients import ParameterClient
from parameter_server.epoch_metrics import EpochMetrics
from parameter_server.training_clock import (
    BestChanged,
    ClockEvent,
    ClockState,
    EpochEnded,
    PassOpened,
    Stopped,
    TrainingClock,
)
from parameter_server.weight_store import GradientKey, Pushed, WeightStore


class ClockKeeper:
    """The training clock as seen by others: who waits for its next move is told. `on_epoch` hears every epoch's end."""

    def __init__(
        self, clock: TrainingClock, weights: ParameterClient, on_epoch: Callable[[EpochMetrics], None], num_shards: int
    ) -> None:
        self._clock, self._weights, self._on_epoch, self._num_shards = clock, weights, on_epoch, num_shards
        self._moved = asyncio.Condition()
        self._turn = asyncio.Lock()
        self.state = messages.Clock(0, None)
        self.stopped: Stopped | None = None
        self._epochs: list[messages.EpochEnded] = []

    async def start(self) -> None:
        await self._obey(self._clock.start())

    def request_stop(self) -> None:
        """At the next pause."""
        self._clock.stop_requested()

    async def finished(self, message: messages.IntervalFinished) -> None:
        # One at a time: a version must be kept everywhere before the pass after it opens.
        async with self._turn:
            await self._obey(self._clock.interval_finished(message.pass_, message.interval, message.sums))

    async def lost(self, reason: str) -> None:
        """A role is gone: the job cannot go on."""
        async with self._turn:
            if self.state.ended is None:
                await self._tell(messages.Clock(self.state.ticks + 1, None, ClockState.FAILED.value, reason))

    async def epochs_after(self, seen: int) -> messages.Epochs:
        async with self._moved:
            await self._moved.wait_for(lambda: len(self._epochs) > seen or self.state.ended is not None)
        epochs, ended, reason = tuple(self._epochs[seen:]), self.state.ended, self.state.reason
        if self.stopped is None:
            return messages.Epochs(epochs, ended, reason, is_lost=ended is not None)
        return messages.Epochs(epochs, ended, reason, self.stopped.best_version, self.stopped.last_version)

    async def after(self, seen: int) -> messages.Clock:
        async with self._moved:
            await self._moved.wait_for(lambda: self.state.ticks > seen)
        return self.state

    async def _obey(self, events: list[ClockEvent]) -> None:
        for event in events:
            match event:
                case EpochEnded(metrics):
                    self._on_epoch(metrics)
                    self._epochs.append(messages.EpochEnded(**msgspec.structs.asdict(metrics)))
                case BestChanged(version, previous):
                    await self._weights.keep(version, previous, shards=range(self._num_shards))
                case PassOpened(pass_):
                    await self._tell(messages.Clock(self.state.ticks + 1, pass_))
                case Stopped(state, reason):
                    self.stopped = event
                    await self._tell(messages.Clock(self.state.ticks + 1, None, state.value, reason))

    async def _tell(self, state: messages.Clock) -> None:
        async with self._moved:
            self.state = state
            self._moved.notify_all()


class ParameterServer:
    """One shard. `keeper` is None but for number 0, and is set before the first request."""

    def __init__(self, store: WeightStore, *, generation: int = 1) -> None:
        self._store, self._generation = store, generation
        self._new_version = asyncio.Condition()
        self.keeper: ClockKeeper | None = None

    async def answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        if getattr(message, "generation", self._generation) != self._generation:
            return messages.Superseded(self._generation), ()
        match message:
            case messages.PullWeights(_, version):
                return await self._pull(version)
            case messages.PushGradients():
                return await self._push(message, buffers)
            case messages.KeepVersion(_, version, release):
                return await self._keep(version, release)
            case messages.IntervalFinished() if self.keeper is not None:
                await self.keeper.finished(message)
                return messages.Done(), ()
            case messages.AwaitClock(_, seen) if self.keeper is not None:
                return await self.keeper.after(seen), ()
            case messages.AwaitEpochs(_, seen) if self.keeper is not None:
                return await self.keeper.epochs_after(seen), ()
            case messages.RequestStop() if self.keeper is not None:
                self.keeper.request_stop()
                return messages.Done(), ()
        return messages.Refused(f"this parameter server has no answer to {type(message).__name__}"), ()

    async def _pull(self, version: int) -> Reply:
        weights = await self._wait_for(version)
        names = tuple(weights)
        return messages.Weights(version, names), [weights[name] for name in names]

    async def _wait_for(self, version: int) -> dict[str, Array]:
        async with self._new_version:
            await self._new_version.wait_for(lambda: self._store.version >= version)
        return dict(self._store.pull(version) or {})

    async def _push(self, message: messages.PushGradients, buffers: list[Array]) -> Reply:
        before, gradients = self._store.version, exactly(buffers, len(message.names), "PushGradients")
        for name, gradient in zip(message.names, gradients, strict=True):
            key = GradientKey(message.generation, message.pass_, message.stage, message.interval, name)
            if self._store.push(key, gradient) is Pushed.TOO_LATE:
                return messages.Superseded(self._generation), ()
        if self._store.version != before:
            async with self._new_version:
                self._new_version.notify_all()
        return messages.Done(), ()

    async def _keep(self, version: int, release: int | None) -> Reply:
        await self._wait_for(version)
        self._store.keep(version)
        if release is not None:
            self._store.release(release)
        return messages.Done(), ()

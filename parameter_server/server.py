"""The parameter server's shell: it answers requests from its shard of the weights; number 0 also keeps the training
clock. It decides nothing itself.
"""

import asyncio
from dataclasses import dataclass

from common.errors import CheckpointError
from common.saga.arrays import Array
from common.wire import messages
from common.wire.channel import Reply, exactly
from parameter_server.checkpoint import CheckpointFolder
from parameter_server.clock_keeper import ClockKeeper
from parameter_server.interval_store import IntervalWeightStore, Place
from parameter_server.metrics import JudgedRows
from parameter_server.weight_store import GradientKey, Pushed, WeightStore


@dataclass(frozen=True)
class ShardPlace:
    """Which shard of how many this is, and where it is written to at a checkpoint."""

    number: int
    count: int
    checkpoints: CheckpointFolder


class ParameterServer:
    """One shard. `keeper` is None but for number 0, and is set before the first request."""

    def __init__(self, store: WeightStore, *, generation: int = 1, place: ShardPlace | None = None) -> None:
        self._store, self._generation, self._place = store, generation, place
        self._new_version = asyncio.Condition()
        self.keeper: ClockKeeper | None = None

    async def answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        if getattr(message, "generation", self._generation) != self._generation:
            return messages.Superseded(self._generation), ()
        match message:
            case messages.PullWeights(_, version, missing):
                return await self._pull(version, missing)
            case messages.PushGradients():
                return await self._push(message, buffers)
            case messages.KeepVersion(_, version, release):
                return await self._keep(version, release)
            case messages.IntervalFinished() if self.keeper is not None:
                await self.keeper.finished(message, _rows(buffers))
                return messages.Done(), ()
            case messages.AwaitClock(_, seen) if self.keeper is not None:
                return await self.keeper.after(seen), ()
            case messages.AwaitEpochs(_, seen) if self.keeper is not None:
                return await self.keeper.epochs_after(seen), ()
            case messages.RequestStop(_, reason) if self.keeper is not None:
                self.keeper.request_stop(reason)
                return messages.Done(), ()
            case messages.WriteCheckpoint(_, epoch, version) if self._place is not None:
                await self._wait_for(version)
                return await self._write(epoch, self._place), ()
            case messages.LineUp(_, place, entries) if isinstance(self._store, IntervalWeightStore):
                self._store.line_up(place, [Place(*entry) for entry in entries])
                await self._notice_versions()
                return messages.Done(), ()
            case messages.StepPerEpoch(_, epoch, version) if isinstance(self._store, IntervalWeightStore):
                await self._wait_for(version)
                self._store.step_per_epoch(epoch)
                return messages.Done(), ()
        return messages.Refused(f"this parameter server has no answer to {type(message).__name__}"), ()

    async def _pull(self, version: int, missing: int) -> Reply:
        weights = await self._wait_for(version, missing)
        names = tuple(weights)
        return messages.Weights(version, names), [weights[name] for name in names]

    async def _wait_for(self, version: int, missing: int = 0) -> dict[str, Array]:
        async with self._new_version:
            await self._new_version.wait_for(lambda: self._store.version >= version)
        return dict(self._store.pull(version, missing) or {})

    async def _push(self, message: messages.PushGradients, buffers: list[Array]) -> Reply:
        gradients = exactly(buffers, len(message.names), "PushGradients")
        for name, gradient in zip(message.names, gradients, strict=True):
            key = GradientKey(message.generation, message.pass_, message.stage, message.interval, name)
            if self._store.push(key, gradient) is Pushed.TOO_LATE:
                return messages.Superseded(self._generation), ()
        if self.keeper is not None:
            self.keeper.line_grew()
        await self._notice_versions()
        return messages.Done(), ()

    async def _notice_versions(self) -> None:
        async with self._new_version:
            self._new_version.notify_all()

    async def _keep(self, version: int, release: int | None) -> Reply:
        await self._wait_for(version)
        self._store.keep(version)
        if release is not None:
            self._store.release(release)
        return messages.Done(), ()

    async def _write(self, epoch: int, place: ShardPlace) -> messages.ShardWritten:
        # Versions never change, so the thread reads what stands there now.
        state = self._store.state()
        try:
            file = await asyncio.to_thread(place.checkpoints.write_shard, epoch, place.number, place.count, state)
        except CheckpointError as error:
            return messages.ShardWritten(error=(error.what, error.why, error.fix))
        return messages.ShardWritten(file.name, file.num_bytes, file.sha256)


def _rows(buffers: list[Array]) -> JudgedRows | None:
    """None: the metric needs none."""
    return JudgedRows(*exactly(buffers, 3, "IntervalFinished")) if buffers else None

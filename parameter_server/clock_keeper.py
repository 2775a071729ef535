"""The training clock as others see it: who waits for its next move is told. The shell of a pure clock."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from common.epoch_metrics import EpochMetrics
from common.errors import CheckpointError
from common.wire import messages
from common.wire.clients import ParameterClient
from parameter_server.checkpoint_keeper import CheckpointKeeper
from parameter_server.clock_events import (
    BecameExact,
    BestChanged,
    CheckpointDue,
    ClockEvent,
    ClockState,
    EpochEnded,
    IntervalsMayBegin,
    MayEnd,
    PassOpened,
    Stopped,
)
from parameter_server.interval_store import IntervalWeightStore
from parameter_server.metrics import JudgedRows
from parameter_server.saved_state import ClockRecord
from parameter_server.training_clock import TrainingClock
from parameter_server.weight_store import WeightStore


class ClockKeeper:
    """Of parameter server 0, whose shard `store` is. `on_epoch` hears every epoch's end."""

    def __init__(
        self,
        clock: TrainingClock,
        store: WeightStore,
        client: ParameterClient,
        *,
        num_shards: int,
        on_epoch: Callable[[EpochMetrics], None] = lambda _: None,
        checkpoints: CheckpointKeeper | None = None,
    ) -> None:
        self._clock, self._store, self._client, self._num_shards = clock, store, client, num_shards
        self._on_epoch, self._checkpoints = on_epoch, checkpoints
        self._moved = asyncio.Condition()
        self._turn = asyncio.Lock()
        self._line_grew = asyncio.Event()
        self.state = messages.Clock(0, None)
        self.stopped: Stopped | None = None
        self._grants: dict[int, tuple[int, messages.Grant]] = {}
        """Interval -> the tick of its newest grant, and the grant."""
        self._ends_below: int | None = None
        self._epochs: list[EpochMetrics] = []
        self._notes: list[str] = []

    async def start(self) -> None:
        await self._obey(self._clock.start())

    async def serve(self) -> None:
        """What it does besides, until cancelled: checkpoints after a time, news of the line."""
        async with asyncio.TaskGroup() as group:
            if self._checkpoints is not None:
                group.create_task(self._checkpoints.remind(self._clock.checkpoint_requested))
            if isinstance(self._store, IntervalWeightStore) and self._num_shards > 1:
                group.create_task(self._tell_line(self._store))

    def request_stop(self, reason: str = "stopped") -> None:
        """At the next pause."""
        self._clock.stop_requested(reason)

    async def finished(self, message: messages.IntervalFinished, rows: JudgedRows | None = None) -> None:
        # One at a time: a version must be kept everywhere before the pass after it opens.
        async with self._turn:
            newest = self._store.version
            pass_, interval = message.pass_, message.interval
            await self._obey(self._clock.interval_finished(pass_, interval, message.sums, rows=rows, newest=newest))

    async def lost(self, reason: str) -> None:
        """A role is gone: the job cannot go on."""
        async with self._turn:
            if self.state.ended is None:
                await self._tell(messages.Clock(self.state.ticks + 1, None, ClockState.FAILED.value, reason))

    def line_grew(self) -> None:
        self._line_grew.set()

    async def epochs_after(self, seen: int) -> messages.Epochs:
        async with self._moved:
            await self._moved.wait_for(lambda: len(self._epochs) > seen or self.state.ended is not None)
        told = messages.Epochs(
            tuple(self._epochs[seen:]), self.state.ended, self.state.reason, notes=tuple(self._notes)
        )
        so_far = self.stopped or self._clock.so_far(self._store.version)
        return msgspec.structs.replace(
            told,
            best_version=so_far.best_version,
            last_version=so_far.last_version,
            best_epoch=so_far.best_epoch,
            last_epoch=so_far.last_epoch,
            is_lost=self.state.ended is not None and self.stopped is None,
        )

    async def after(self, seen: int) -> messages.Clock:
        async with self._moved:
            await self._moved.wait_for(lambda: self.state.ticks > seen)
        grants = tuple(grant for tick, grant in self._grants.values() if tick > seen)
        return msgspec.structs.replace(self.state, grants=grants, ends_below=self._ends_below)

    # ---- what the clock says

    async def _obey(self, events: Sequence[ClockEvent]) -> None:
        self._pin(events)
        for event in events:
            match event:
                case EpochEnded(metrics):
                    self._on_epoch(metrics)
                    self._epochs.append(metrics)
                    await self._tell(self.state)
                case BestChanged(version, previous):
                    await self._client.keep(version, previous, shards=range(self._num_shards))
                case BecameExact(epoch, version):
                    await self._client.step_per_epoch(epoch, version)
                case CheckpointDue(record):
                    if not await self._save(record):
                        return
                case PassOpened(pass_):
                    self._grants.clear()
                    await self._tell(messages.Clock(self.state.ticks + 1, pass_))
                case IntervalsMayBegin():
                    await self._grant(event)
                case MayEnd(ends_below):
                    self._ends_below = ends_below
                    await self._tell(msgspec.structs.replace(self.state, ticks=self.state.ticks + 1))
                case Stopped(state, reason):
                    self.stopped = event
                    await self._tell(messages.Clock(self.state.ticks + 1, None, state.value, reason))

    def _pin(self, events: Sequence[ClockEvent]) -> None:
        """At once, while the newest version is still the one that the clock was told."""
        if not isinstance(self._store, IntervalWeightStore):
            return
        for event in events:
            for interval, pass_ in event.grants if isinstance(event, IntervalsMayBegin) else ():
                pinned = self._store.begin(interval, pass_.epoch)
                assert pinned == pass_.weights_version
        self.line_grew()

    async def _grant(self, event: IntervalsMayBegin) -> None:
        tick = self.state.ticks + 1
        for interval, pass_ in event.grants:
            self._grants[interval] = (tick, messages.Grant(interval, pass_, event.exact_until))
        await self._tell(messages.Clock(tick, None))

    async def _save(self, record: ClockRecord) -> bool:
        """False: the job has failed with that."""
        if self._checkpoints is None:
            return True
        try:
            note = await self._checkpoints.write(record)
        except CheckpointError as error:
            await self._tell(messages.Clock(self.state.ticks + 1, None, ClockState.FAILED.value, str(error)))
            self.stopped = self._clock.failed(str(error))
            return False
        if note is not None:
            self._notes.append(note)
        return True

    async def _tell(self, state: messages.Clock) -> None:
        async with self._moved:
            self.state = state
            self._moved.notify_all()

    async def _tell_line(self, store: IntervalWeightStore) -> None:
        """Every follower hears of every place, in order; the next news wait until this is heard."""
        while True:
            await self._line_grew.wait()
            self._line_grew.clear()
            place, entries = store.news()
            if entries:
                await self._client.line_up(place, entries)

"""What roles ask of each other: ParameterClient speaks to all parameter servers, GraphClient to graph servers."""

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np

from common.passes import Pass
from common.saga.arrays import Array
from common.sharding import join, shard
from common.wire import messages
from common.wire.channel import Channel, expect
from common.wire.tasks import together

REQUEST_SECONDS = 60.0
CHECKPOINT_SECONDS = 600.0
"""A large shard over a slow line."""
KEPT_WEIGHTS = 4
CLOCK_SECONDS = 24 * 3600.0
"""The training clock answers when it moves, which is a whole pass later at worst."""


_Which = tuple[int, int]
"""Of weights: the version, and how many updates are missing."""


class ParameterClient:
    """Weights are fetched once per version, however many tasks ask; gradients go to every shard, rows or not."""

    def __init__(self, channel: Channel, *, num_parameter_servers: int, generation: int = 1) -> None:
        self._channel, self._generation = channel, generation
        self._peers = [f"parameter{n}" for n in range(num_parameter_servers)]
        self._weights: dict[_Which, dict[str, Array]] = {}
        """In the order in which they came; a few, for in async tasks of several versions are about."""
        self._fetching: dict[_Which, _Fetch] = {}
        self._ahead: dict[_Which, int] = {}
        """Bytes of what was fetched before a task asked for it."""

    async def weights(self, version: int, missing: int = 0) -> tuple[Mapping[str, Array], int]:
        """All parameters of a version, and how many bytes were fetched for it now (0: they were here).

        missing  how many updates the pass lacks, see `Pass.missing_updates`
        """
        which = version, missing
        if which in self._weights:
            return self._weights[which], self._ahead.pop(which, 0)
        # One version may have to wait for gradients that come of tasks with another, so no fetch waits for another.
        is_first = which not in self._fetching
        if is_first:
            self._fetching[which] = _Fetch(asyncio.create_task(self._fetch(which)))
        weights = await self._fetching[which].result()
        return weights, sum(array.nbytes for array in weights.values()) if is_first else 0

    async def fetch_ahead(self, version: int) -> None:
        """So that tasks which are going to ask for this version need not wait. The first of them is told the bytes."""
        _, num_bytes = await self.weights(version)
        if num_bytes:
            self._ahead[version, 0] = num_bytes

    def remember(self, version: int, weights: Mapping[str, Array], missing: int = 0) -> None:
        """Weights a warm container kept: they need not be fetched again."""
        self._weights[version, missing] = dict(weights)
        while len(self._weights) > KEPT_WEIGHTS:
            # the oldest here, not the oldest version: predictions ask for one that is long past
            oldest = next(iter(self._weights))
            del self._weights[oldest]
            self._ahead.pop(oldest, None)

    def remembered(self) -> tuple[int, dict[str, Array]]:
        """The newest, to be kept in a warm container. Version -1: none was fetched."""
        newest = max((version for version, missing in self._weights if not missing), default=-1)
        return newest, self._weights.get((newest, 0), {})

    async def push(self, gradients: Mapping[str, Array], *, pass_: Pass, stage: str, interval: int) -> int:
        """Returns when every shard has them; the bytes sent."""
        names = tuple(sorted(gradients))
        message = messages.PushGradients(self._generation, pass_, stage, interval, names)
        count = len(self._peers)
        parts = [[shard(gradients, count, k)[name] for name in names] for k in range(count)]
        replies = await together(
            self._channel.request(peer, message, part, deadline=REQUEST_SECONDS)
            for peer, part in zip(self._peers, parts, strict=True)
        )
        for reply, _ in replies:
            expect(reply, messages.Done)
        return sum(gradients[name].nbytes for name in names)

    async def report(self, pass_: Pass, interval: int, sums: Mapping[str, float], rows: Sequence[Array] = ()) -> None:
        message = messages.IntervalFinished(self._generation, pass_, interval, dict(sums))
        reply, _ = await self._channel.request(self._peers[0], message, rows, deadline=REQUEST_SECONDS)
        expect(reply, messages.Done)

    async def clock(self, seen: int) -> messages.Clock:
        """Waits until the training clock has moved past `seen`."""
        message = messages.AwaitClock(self._generation, seen)
        reply, _ = await self._channel.request(self._peers[0], message, deadline=CLOCK_SECONDS)
        return expect(reply, messages.Clock)

    async def beat(self, name: str) -> None:
        reply, _ = await self._channel.request(
            self._peers[0], messages.Beat(self._generation, name), deadline=REQUEST_SECONDS
        )
        expect(reply, messages.Done)

    async def admit(self, name: str, proof: str | None) -> None:
        """Let a lease speak to every parameter server; None: no longer."""
        message = (
            messages.Expel(self._generation, name) if proof is None else messages.Admit(self._generation, name, proof)
        )
        await asyncio.gather(*(self._channel.request(peer, message, deadline=REQUEST_SECONDS) for peer in self._peers))

    async def keep(self, version: int, release: int | None, *, shards: Sequence[int]) -> None:
        message = messages.KeepVersion(self._generation, version, release)
        for number in shards:
            reply, _ = await self._channel.request(self._peers[number], message, deadline=REQUEST_SECONDS)
            expect(reply, messages.Done)

    async def write_checkpoint(self, epoch: int, version: int) -> list[messages.ShardWritten]:
        """Every shard's word, in order."""
        message = messages.WriteCheckpoint(self._generation, epoch, version)
        replies = await asyncio.gather(
            *(self._channel.request(peer, message, deadline=CHECKPOINT_SECONDS) for peer in self._peers)
        )
        return [expect(reply, messages.ShardWritten) for reply, _ in replies]

    async def line_up(self, place: int, entries: Sequence[tuple[int, int, bool]]) -> None:
        """To all but parameter server 0, which gives the places."""
        message = messages.LineUp(self._generation, place, tuple((i, e, begins) for i, e, begins in entries))
        await self._tell(self._peers[1:], message)

    async def step_per_epoch(self, epoch: int, version: int) -> None:
        await self._tell(self._peers, messages.StepPerEpoch(self._generation, epoch, version))

    async def _tell(self, peers: Sequence[str], message: messages.Message) -> None:
        requests = (self._channel.request(peer, message, deadline=REQUEST_SECONDS) for peer in peers)
        for reply, _ in await asyncio.gather(*requests):
            expect(reply, messages.Done)

    async def _fetch(self, which: _Which) -> dict[str, Array]:
        version, missing = which
        try:
            weights = join(await together(self._pull(peer, which) for peer in self._peers))
            self.remember(version, weights, missing)
        finally:
            del self._fetching[which]
        return weights

    async def _pull(self, peer: str, which: _Which) -> dict[str, Array]:
        message = messages.PullWeights(self._generation, *which)
        reply, buffers = await self._channel.request(peer, message, deadline=REQUEST_SECONDS)
        return dict(zip(expect(reply, messages.Weights).names, buffers, strict=True))


class _Fetch:
    """A request that several wait for; when nobody does any more, it ends."""

    def __init__(self, task: asyncio.Task[dict[str, Array]]) -> None:
        self._task, self._waiting = task, 0

    async def result(self) -> dict[str, Array]:
        self._waiting += 1
        try:
            return await asyncio.shield(self._task)
        finally:
            self._waiting -= 1
            if not self._waiting and not self._task.done():
                self._task.cancel()


class GraphClient:
    def __init__(self, channel: Channel, *, generation: int = 1) -> None:
        self._channel, self._generation = channel, generation

    async def send_ghosts(self, server: int, block: Array, *, pass_: Pass, table: str, interval: int) -> int:
        """Returns when they stand in the peer's table; the bytes sent."""
        message = messages.GhostRows(self._generation, pass_, table, interval)
        reply, _ = await self._channel.request(f"graph{server}", message, [block], deadline=REQUEST_SECONDS)
        expect(reply, messages.Done)
        return block.nbytes

    async def rows(self, server: int, tensor: str, *, pass_: Pass, interval: int) -> Array:
        message = messages.PullRows(self._generation, pass_, tensor, interval)
        reply, buffers = await self._channel.request(f"graph{server}", message, deadline=REQUEST_SECONDS)
        expect(reply, messages.Rows)
        return np.asarray(buffers[0])

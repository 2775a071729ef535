"""A parameter server as a process of its own: a listener, its shard, and for number 0 the clock and the membership."""

import asyncio
import time

from common.job_spec import JobSpec
from common.kernel_names import kernel_names
from common.peak_memory import PeakMemory
from common.role_process import end_with_parent, read_book, say
from common.role_start import Listening, RoleStart
from common.saga.arrays import Array
from common.wire import messages
from common.wire.admission import Admission
from common.wire.channel import Reply, Traffic
from common.wire.clients import ParameterClient
from common.wire.identity import Identity
from common.wire.zmq_channel import Dialer, Listener, ListenerOptions
from parameter_server.assemble import checkpoint_place, training_clock, weight_store
from parameter_server.checkpoint import read_checkpoint
from parameter_server.checkpoint_keeper import CheckpointKeeper
from parameter_server.clock_keeper import ClockKeeper
from parameter_server.membership import Membership
from parameter_server.server import ParameterServer, ShardPlace

BEAT_SECONDS = 1.0
LOST_SECONDS = 15.0
"""Without a beat for so long, a role is lost. A loop may be busy for seconds with one block of rows."""


class ParameterRole:
    def __init__(self, start: RoleStart) -> None:
        self._start, self._spec = start, JobSpec.model_validate_json(start.spec)
        endpoint = start.s3_endpoint
        self._resumed = None if start.resume is None else read_checkpoint(start.resume, endpoint_url=endpoint)
        self._store = weight_store(
            self._spec, start.facts, start.number, generation=start.generation, resumed=self._resumed
        )
        self._checkpoints = checkpoint_place(
            self._spec,
            start.facts,
            start.checkpoints,
            job_id=start.job_id,
            generation=start.generation,
            endpoint_url=endpoint,
        )
        self._server = ParameterServer(self._store, generation=start.generation, place=self._shard_place())
        self._admission, self._traffic, self._memory = Admission(), Traffic(), PeakMemory()
        self._ready = asyncio.Event()
        names = [n for n in start.admitted if n.startswith(("graph", "parameter"))]
        self._members = Membership(names, limit=LOST_SECONDS, began=time.monotonic())
        for name, proof in start.admitted.items():
            self._admission.admit(name, proof)

    async def run(self) -> None:
        start, me = self._start, Identity(self._start.job_id, self._start.generation, self._start.name, kernel_names())
        weather = start.weather
        options = ListenerOptions(traffic=self._traffic, shaping=weather.shaping, faults=weather.faults)
        async with Listener(
            me,
            self._answer,
            endpoint=start.endpoint,
            admission=self._admission,
            keys=start.server_keys,
            options=options,
        ) as listener:
            say(Listening(listener.endpoint))
            book = await read_book(start)
            end_with_parent(start)
            dialer = Dialer(me, book.addresses, credentials=start.credentials, faults=weather.faults)
            async with dialer as channel:
                client = ParameterClient(
                    channel, num_parameter_servers=start.num_parameter_servers, generation=start.generation
                )
                await self._serve(client)

    async def _serve(self, client: ParameterClient) -> None:
        """Until the launcher is gone: after the job's end its results are still asked for."""
        async with asyncio.TaskGroup() as group:
            if self._start.number == 0:
                keeper = self._keeper(client)
                self._server.keeper = keeper
                group.create_task(self._watch(keeper))
                group.create_task(keeper.serve())
                await keeper.start()
            self._ready.set()
            group.create_task(self._beat(client))

    def _shard_place(self) -> ShardPlace | None:
        if self._checkpoints is None:
            return None
        return ShardPlace(self._start.number, self._start.num_parameter_servers, self._checkpoints.folder)

    def _requests(self) -> dict[str, int]:
        """To S3, for checkpoints."""
        return {} if self._checkpoints is None else dict(self._checkpoints.folder.requests)

    def _keeper(self, client: ParameterClient) -> ClockKeeper:
        places = self._checkpoints
        clock = training_clock(self._spec, self._start.facts, resumed=self._resumed, saves=places is not None)
        checkpoints = None if places is None else CheckpointKeeper(places, client)
        count = self._start.num_parameter_servers
        return ClockKeeper(clock, self._store, client, num_shards=count, checkpoints=checkpoints)

    async def _watch(self, keeper: ClockKeeper) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            now = time.monotonic()
            if lost := self._members.lost(now):
                silent = self._members.silent_for(lost[0], now)
                await keeper.lost(f"{' and '.join(lost)} has not been heard of for {silent:.0f} s")

    async def _beat(self, client: ParameterClient) -> None:
        while True:
            await client.beat(self._start.name)
            await asyncio.to_thread(self._memory.sample)  # it walks all pages of this process
            await asyncio.sleep(BEAT_SECONDS)

    async def _answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        match message:
            case messages.Beat():
                self._members.beat(peer, time.monotonic())
                return messages.Done(), ()
            case messages.Admit(_, name, proof) if name.startswith("lambda") and peer.startswith("graph"):
                self._admission.admit(name, proof)
                return messages.Done(), ()
            case messages.Expel(_, name) if name.startswith("lambda") and peer.startswith("graph"):
                self._admission.expel(name)
                return messages.Done(), ()
            case messages.PullStatus():
                return messages.RoleStatus(0, counts=self._requests()), ()
            case messages.PullReport():
                traffic = self._traffic
                held = {"stash_bytes": self._store.stash_bytes, "held_back_bytes": self._store.held_back_bytes}
                report = messages.RoleReport(
                    dict(traffic.payload),
                    dict(traffic.overhead),
                    {**held, **self._requests()},
                    (kernel_names(),),
                    self._memory.sample(at_once=True),
                )
                return report, ()
        await self._ready.wait()
        return await self._server.answer(peer, message, buffers)


async def main(start: RoleStart) -> None:
    await ParameterRole(start).run()

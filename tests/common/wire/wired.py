"""A listener and who dials it, on ipc or on CURVE over TCP."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import zmq
import zmq.asyncio

from common.passes import train
from common.saga.arrays import Array
from common.wire import messages
from common.wire.admission import Admission
from common.wire.channel import Answer, Faults, Reply
from common.wire.credit import Window
from common.wire.envelope import NO_TOKEN, Kind, seal, unseal
from common.wire.frames import decode, encode
from common.wire.identity import Identity
from common.wire.keys import Address, Credentials, KeyPair, Token, new_key_pair, new_token
from common.wire.sockets import WireSettings
from common.wire.zmq_channel import Dialer, Listener, ListenerOptions

JOB, GENERATION = "cora-20260101t000000-abc123", 3
QUICK = WireSettings(
    retry_seconds=0.05,
    heartbeat_seconds=0.2,
    heartbeat_timeout_seconds=0.6,
    handshake_seconds=0.5,
    linger_seconds=0.1,
)
LONG = 20.0
"""A deadline that nobody is meant to reach."""


async def echo(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
    return messages.Rows(), buffers


def rows_message(interval: int = 0) -> messages.GhostRows:
    return messages.GhostRows(GENERATION, train(1), "h1", interval)


@contextmanager
def short_folder():
    """pytest's own folders have names that are too long for the path of a socket."""
    with tempfile.TemporaryDirectory(prefix="dw") as folder:
        yield Path(folder)


@dataclass
class Room:
    """graph0 listens here."""

    secure: bool
    folder: Path
    server: KeyPair = field(default_factory=new_key_pair)
    admission: Admission = field(default_factory=Admission)
    book: dict[str, Address] = field(default_factory=dict)

    def credentials(self) -> Credentials:
        return new_key_pair() if self.secure else new_token()

    def admitted(self, name: str) -> Credentials:
        credentials = self.credentials()
        self.admission.admit(name, credentials.proof)
        return credentials

    def listener(self, answer: Answer = echo, options: ListenerOptions | None = None) -> Listener:
        """On the address of the one before, if there was one."""
        fresh = "tcp://127.0.0.1:*" if self.secure else f"ipc://{self.folder}/graph0"
        return Listener(
            Identity(JOB, GENERATION, "graph0"),
            answer,
            endpoint=self.book["graph0"].endpoint if self.book else fresh,
            admission=self.admission,
            keys=self.server if self.secure else None,
            options=options or ListenerOptions(QUICK),
        )

    @asynccontextmanager
    async def listening(self, answer: Answer = echo, options: ListenerOptions | None = None) -> AsyncIterator[Listener]:
        async with self.listener(answer, options) as listener:
            self.book["graph0"] = Address(listener.endpoint, self.server.public if self.secure else "")
            yield listener

    def dialer(
        self,
        name: str = "graph1",
        credentials: Credentials | None = None,
        *,
        identity: Identity | None = None,
        faults: Faults | None = None,
        settings: WireSettings = QUICK,
    ) -> Dialer:
        return Dialer(
            identity or Identity(JOB, GENERATION, name),
            self.book,
            credentials=credentials or self.admitted(name),
            settings=settings,
            faults=faults,
        )

    @asynccontextmanager
    async def raw(
        self, credentials: Credentials | None, routing_id: bytes = b"", *, heartbeat_ms: int = 0
    ) -> AsyncIterator["RawPeer"]:
        context = zmq.asyncio.Context()
        socket = context.socket(zmq.DEALER)
        socket.setsockopt(zmq.HEARTBEAT_IVL, heartbeat_ms)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 10_000)  # else as short as the interval
        if routing_id:
            socket.setsockopt(zmq.ROUTING_ID, routing_id)
        if isinstance(credentials, KeyPair):
            socket.setsockopt_string(zmq.CURVE_SERVERKEY, self.server.public)
            socket.setsockopt_string(zmq.CURVE_PUBLICKEY, credentials.public)
            socket.setsockopt_string(zmq.CURVE_SECRETKEY, credentials.secret)
        socket.connect(self.book["graph0"].endpoint)
        try:
            yield RawPeer(socket, bytes.fromhex(credentials.secret) if isinstance(credentials, Token) else NO_TOKEN)
        finally:
            context.destroy(linger=0)


@dataclass
class RawPeer:
    """Whoever speaks to a listener without our Dialer."""

    socket: zmq.asyncio.Socket
    token: bytes

    async def send(self, *frames: bytes) -> None:
        await self.socket.send_multipart(frames)

    async def say(
        self, kind: Kind, number: int, message: messages.Message | None = None, buffers: Sequence[Array] = ()
    ) -> None:
        await self.send(seal(kind, number, self.token), *(encode(message, buffers) if message else []))

    async def hello(self, name: str) -> messages.AnyMessage:
        await self.say(Kind.HELLO, 1, messages.Hello(JOB, GENERATION, name))
        return await self.heard()

    async def heard(self) -> messages.AnyMessage | Kind:
        """The next message, or the kind of one that has only an envelope."""
        async with asyncio.timeout(LONG):
            first, *frames = await self.socket.recv_multipart()
        envelope = unseal(first)
        assert envelope is not None
        return decode(frames)[0] if frames else envelope.kind

    async def hears_nothing(self) -> bool:
        return await self.socket.poll(200) == 0


@asynccontextmanager
async def undisturbed(channel: Dialer):
    """While the block runs, every request of a good peer is answered, and answered right."""
    ended, count = asyncio.Event(), 0

    async def work() -> None:
        nonlocal count
        while not ended.is_set():
            sent = np.full(3000 + count, count)
            reply, (got,) = await channel.request("graph0", rows_message(count), [sent], deadline=LONG)
            assert reply == messages.Rows()
            assert np.array_equal(sent, got)
            count += 1

    async with asyncio.TaskGroup() as group:
        group.create_task(work())
        try:
            yield
        finally:
            ended.set()
    assert count > 0


def run(
    secure: bool, test: Callable[[Room], Awaitable[None]], window: Window | None = None, *, limit: float = 60
) -> None:
    with short_folder() as folder:
        room = Room(secure, folder, admission=Admission(window))

        async def limited() -> None:
            async with asyncio.timeout(limit):
                await test(room)

        asyncio.run(limited())

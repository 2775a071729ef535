"""A role's one port: it answers many peers at once, knows each by key or token, and suffers nothing from a bad one.

Every request is a task; its reply bears its number. What is malformed is refused with a reason and counted; the third
time strikes the peer. A request that is repeated while it is being answered is answered once.
"""

import asyncio
import os
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import zmq

from common.errors import BadFrame, WireError
from common.saga.arrays import Array
from common.wire import messages
from common.wire.admission import Admission, Hearing, Seat
from common.wire.channel import Answer, Faults, Traffic, refusing
from common.wire.envelope import Envelope, Kind, seal, unseal
from common.wire.frames import decode, encode
from common.wire.identity import Identity
from common.wire.keys import KeyPair, token_proof
from common.wire.pace import Mischief, Shaping, SlowLinks
from common.wire.sockets import (
    Context,
    WireSettings,
    bound_endpoint,
    check_endpoint,
    listening_socket,
    received,
    user_id,
)
from common.wire.tasks import Tasks
from common.wire.zap import ZapDoor

Frames = Sequence[memoryview | bytes]


@dataclass
class Tally:
    """What a listener met besides good requests, by peer; strangers count as an empty name."""

    refused: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    unreachable: Counter[str] = field(default_factory=Counter)
    """Replies that had nowhere to go: the peer was gone (it asks again if it comes back)."""
    not_reading: Counter[str] = field(default_factory=Counter)
    """Replies that had no room, for the peer has left `send_high_water` of them unread."""


@dataclass(frozen=True)
class ListenerOptions:
    settings: WireSettings = field(default_factory=WireSettings)
    traffic: Traffic = field(default_factory=Traffic)
    """Every request that arrives and every reply that leaves is counted here, and at no other end."""
    on_hello: Callable[[str, messages.Hello], None] = lambda _name, _hello: None
    on_struck: Callable[[str, str], None] = lambda _name, _reason: None
    shaping: Mapping[str, Shaping] = field(default_factory=dict)
    """By the beginning of a peer's name; both directions."""
    faults: Faults | None = None
    """Of replies."""


class Listener:
    """`async with Listener(...) as listener:` answers until the block ends; its address is `listener.endpoint`.

    endpoint    `ipc://` and a short path, or `tcp://127.0.0.1:*` (then `keys` is this listener's own pair)
    admission   who may speak; may change at any time
    """

    def __init__(
        self,
        me: Identity,
        answer: Answer,
        *,
        endpoint: str,
        admission: Admission,
        keys: KeyPair | None = None,
        options: ListenerOptions | None = None,
    ) -> None:
        check_endpoint(endpoint, secure=keys is not None)
        self._me, self._answer, self.endpoint, self._keys = me, refusing(answer), endpoint, keys
        self._admission, self._options = admission, options or ListenerOptions()
        self._slow, self._mischief = SlowLinks(self._options.shaping), Mischief(self._options.faults)
        self.tally = Tally()

    async def __aenter__(self) -> Self:
        self._admission.clear_seats()
        self._tasks, self._context = Tasks(), Context()
        try:
            self._open_sockets()
        except BaseException:
            self._context.destroy(linger=0)
            raise
        await self._tasks.open()
        self._tasks.spawn(self._receive())
        if self._door is not None:
            self._tasks.spawn(self._door.serve())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._tasks.close(kind, error, trace)
        finally:
            self._close_sockets()

    def _open_sockets(self) -> None:
        self._door = ZapDoor(self._context, self._admission) if self._keys is not None else None
        self._socket = listening_socket(self._context, self._options.settings, self._keys)
        try:
            self._socket.raw.bind(self.endpoint)
        except zmq.ZMQError as error:
            self._hang_up()
            raise WireError(
                f"{self._me.name} cannot listen on {self.endpoint}", why=str(error), fix="use another address"
            ) from error
        self.endpoint = bound_endpoint(self._socket.raw)

    def _hang_up(self) -> None:
        self._socket.close()
        if self._door is not None:
            self._door.close()

    def _close_sockets(self) -> None:
        self._hang_up()
        # Waits for the last replies, `linger_seconds` at most.
        self._context.term()
        kind, _, place = self.endpoint.partition("://")
        if kind == "ipc":
            Path(place).unlink(missing_ok=True)

    async def _receive(self) -> None:
        while True:
            connection, *frames = await self._socket.receive()
            await self._hear(connection.bytes, frames)
            # While messages wait, receiving one does not suspend: a flood would keep everybody else from running.
            await asyncio.sleep(0)

    async def _hear(self, connection: bytes, frames: list[zmq.Frame]) -> None:
        envelope = unseal(frames[0].buffer) if frames else None
        proof = self._proof(frames, envelope)
        name, number = self._admission.name(proof) or "", envelope.number if envelope else 0
        match self._admission.hear(connection, proof):
            case Hearing.DROPPED:
                self.tally.dropped[name] += 1
            case Hearing.STRANGER:
                # Number 0 is nobody's request: a reply on a stolen connection may reach its owner.
                answered = number if self._admission.seat(connection) is None else 0
                await self._refuse(connection, answered, name, "you are not on the list of this job's peers")
            case Hearing.THIEF:
                await self._fault(connection, 0, proof, "this routing id is another peer's")
            case _ if envelope is None:
                await self._fault(connection, number, proof, "the first frame is no envelope")
            case Hearing.UNKNOWN if envelope.kind is not Kind.HELLO:
                await self._send(connection, name, [seal(Kind.UNKNOWN, number)])
            case _:
                await self._take(connection, proof, envelope, [received(frame) for frame in frames[1:]])

    def _proof(self, frames: list[zmq.Frame], envelope: Envelope | None) -> str:
        if self._keys is not None:
            return user_id(frames[0]) if frames else ""
        return token_proof(envelope.token) if envelope else ""

    async def _take(self, connection: bytes, proof: str, envelope: Envelope, frames: Frames) -> None:
        seat, number = self._admission.seat(connection), envelope.number
        try:
            if envelope.kind is Kind.HELLO:
                await self._hello(connection, proof, number, decode(frames)[0])
            elif envelope.kind is Kind.PROBE and seat is not None:
                await self._send(connection, seat.name, [seal(_state(seat, number), number)])
            elif envelope.kind is Kind.REQUEST and seat is not None:
                await self._request(connection, seat, number, frames)
            else:
                raise BadFrame(f"a listener hears no {envelope.kind.name}")
        except BadFrame as error:
            await self._fault(connection, number, proof, str(error))

    async def _hello(self, connection: bytes, proof: str, number: int, hello: messages.AnyMessage) -> None:
        name = self._admission.name(proof) or ""
        if not isinstance(hello, messages.Hello):
            raise BadFrame(f"{type(hello).__name__} where a hello was expected")
        if hello.name != name or hello.job_id != self._me.job_id:
            reason = f"this is {self._me.name} of job {self._me.job_id}, and you are {name} to it"
            await self._refuse(connection, number, name, reason)
        elif hello.generation != self._me.generation:
            superseded = encode(messages.Superseded(self._me.generation))
            await self._send(connection, name, [seal(Kind.REPLY, number), *superseded])
        else:
            window = self._admission.introduce(connection, proof).credit.window
            self._options.on_hello(name, hello)
            welcome = encode(messages.Welcome(window.num_bytes, window.num_requests))
            await self._send(connection, name, [seal(Kind.REPLY, number), *welcome])

    async def _request(self, connection: bytes, seat: Seat, number: int, frames: Frames) -> None:
        if number in seat.credit:
            self.tally.repeated[seat.name] += 1
            await self._send(connection, seat.name, [seal(Kind.WORKING, number)])
            return
        message, buffers = decode(frames)
        size = sum(len(frame) for frame in frames)
        if not seat.credit.take(number, size):
            window = seat.credit.window
            raise BadFrame(
                f"{size} bytes more than {seat.credit.num_bytes} bytes that are not answered",
                why=f"the window is {window.num_bytes} bytes in {window.num_requests} requests",
            )
        self._options.traffic.count(seat.name, self._me.name, frames)
        self._tasks.spawn(self._serve(connection, seat, number, message, buffers))

    async def _serve(
        self, connection: bytes, seat: Seat, number: int, message: messages.AnyMessage, buffers: list[Array]
    ) -> None:
        try:
            await self._pass_time(seat.name, "in", sum(buffer.nbytes for buffer in buffers))
            reply = await self._reply(seat.name, message, buffers)
            await self._pass_time(seat.name, "out", sum(len(frame) for frame in reply))
            await self._mischief.wait()
        finally:
            seat.credit.give(number)
        if self._admission.seat(connection) is not seat:
            return
        for _ in range(self._mischief.copies()):
            self._options.traffic.count(self._me.name, seat.name, reply)
            await self._send(connection, seat.name, [seal(Kind.REPLY, number), *reply])

    async def _reply(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Frames:
        try:
            reply = encode(*await self._answer(peer, message, buffers))
        except Exception as error:  # a request that the role cannot digest ends that request, not the role
            return encode(messages.Refused(f"{self._me.name} failed at {type(message).__name__}: {_last_words(error)}"))
        limit, largest = self._options.settings.window.num_bytes, max(len(frame) for frame in reply)
        if largest > limit:
            return encode(messages.Refused(f"the reply has a buffer of {largest} bytes, the wire carries {limit}"))
        return reply

    async def _pass_time(self, peer: str, direction: str, size: int) -> None:
        if self._options.shaping:
            await asyncio.sleep(self._slow.seconds(peer, direction, size, asyncio.get_running_loop().time()))

    async def _fault(self, connection: bytes, number: int, proof: str, reason: str) -> None:
        name = self._admission.name(proof) or ""
        is_struck = self._admission.fault(proof)
        await self._refuse(connection, number, name, reason + ("; you are struck from the list" if is_struck else ""))
        if is_struck:
            self._options.on_struck(name, reason)

    async def _refuse(self, connection: bytes, number: int, name: str, reason: str) -> None:
        self.tally.refused[name] += 1
        await self._send(connection, name, [seal(Kind.REPLY, number), *encode(messages.Refused(reason))])

    async def _send(self, connection: bytes, name: str, frames: Frames) -> None:
        try:
            self._socket.send([connection, *frames])
        except zmq.Again:
            self.tally.not_reading[name] += 1
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            self.tally.unreachable[name] += 1


def _state(seat: Seat, number: int) -> Kind:
    return Kind.WORKING if number in seat.credit else Kind.LOST


def _last_words(error: Exception) -> str:
    """Without the frames' values, which may hold what nobody should read."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({os.path.basename(place.filename)}:{place.lineno})"

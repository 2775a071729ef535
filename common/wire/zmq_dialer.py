"""The channel of a role to the listeners of others: one connection per peer, begun with a hello, kept by libzmq.

A request whose reply does not come is asked after every `retry_seconds` until its deadline; the listener says whether
it is being worked on, or lost, and only what was lost is sent again. So a long wait costs a few bytes, and a listener
that was started anew on its address is greeted and given what it missed. What a peer may have unanswered is bounded.
"""

import asyncio
import itertools
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import zmq

from common.errors import BadFrame, DeadlineExceeded, PeerClosed
from common.saga.arrays import Array
from common.wire import messages
from common.wire.channel import Faults
from common.wire.credit import Credit, Window
from common.wire.envelope import NO_TOKEN, Kind, seal, unseal
from common.wire.frames import decode, encode
from common.wire.identity import Identity
from common.wire.keys import Address, Credentials, KeyPair, Token
from common.wire.loop_socket import LoopSocket
from common.wire.pace import Mischief
from common.wire.sockets import Context, WireSettings, check_endpoint, dialling_socket, received
from common.wire.tasks import Tasks

Frames = Sequence[memoryview | bytes]


class Dialer:
    """`async with Dialer(...) as channel:` is a Channel. `book`: name -> address; the caller may change it at any time.

    me           what the hello says
    credentials  a token for ipc, a key pair for TCP
    faults       of what is sent, for tests
    """

    def __init__(
        self,
        me: Identity,
        book: Mapping[str, Address],
        *,
        credentials: Credentials,
        settings: WireSettings | None = None,
        faults: Faults | None = None,
    ) -> None:
        self.me, self.book, self.credentials = me, book, credentials
        self.settings, self.mischief = settings or WireSettings(), Mischief(faults)
        self._links: dict[str, _Link] = {}

    async def __aenter__(self) -> Self:
        self.tasks, self.context = Tasks(), Context()
        await self.tasks.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.tasks.close(kind, error, trace)
        finally:
            for link in self._links.values():
                link.hang_up()
            self._links.clear()
            self.context.destroy(linger=0)

    async def request(
        self, peer: str, message: messages.Message, buffers: Sequence[Array] = (), *, deadline: float
    ) -> tuple[messages.AnyMessage, list[Array]]:
        """`deadline` in seconds. Raises DeadlineExceeded, PeerClosed if it is not in the book, BadFrame.

        The buffers must not change before this returns.
        """
        frames, link = encode(message, buffers), self._link(peer)
        unheard = "it has not answered the hello: it is not there, or does not admit us"
        try:
            async with asyncio.timeout(deadline):
                reply = await link.ask(frames)
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"{peer} did not answer {type(message).__name__} of {self.me.name} within {deadline} s",
                why="" if link.welcome else unheard,
                fix="see whether it runs, and its last words",
            ) from error
        return decode(reply)

    def _link(self, peer: str) -> "_Link":
        if self.context.closed:
            raise PeerClosed(f"the channel of {self.me.name} is closed", why=f"it asked {peer}")
        address = self.book.get(peer)
        if address is None:
            raise PeerClosed(f"{peer} is not there", why=f"{self.me.name} asked it", fix="look at its last words")
        if peer not in self._links:
            self._links[peer] = _Link(self, peer)
        self._links[peer].dial(address)
        return self._links[peer]


@dataclass
class _Pending:
    """A request that waits. `verdict`: what the listener said of it, if not its reply."""

    reply: Frames | None = None
    verdict: Kind | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, kind: Kind, frames: Frames) -> None:
        if kind is Kind.REPLY:
            self.reply = self.reply or frames
        else:
            self.verdict = kind
        self.woken.set()

    async def wait(self, seconds: float) -> Kind | None:
        """What has been told since the last time; None if nothing was."""
        try:
            async with asyncio.timeout(seconds):
                await self.woken.wait()
        except TimeoutError:
            return None
        self.woken.clear()
        verdict, self.verdict = self.verdict, None
        return Kind.REPLY if self.reply is not None else verdict


class _NotWelcome(Exception):
    """The hello was answered with something else: it is the answer to every request."""

    def __init__(self, reply: Frames) -> None:
        super().__init__()
        self.reply = reply


class _Link:
    """To one peer. `welcome`: it has answered the hello."""

    def __init__(self, dialer: Dialer, peer: str) -> None:
        self._dialer, self._peer = dialer, peer
        # Nobody can guess it, so nobody can take this connection's place; the same for its life, so that a reply finds
        # its way after a reconnect.
        self._routing_id = dialer.me.name.encode() + b"/" + secrets.token_bytes(16)
        token = dialer.credentials.secret if isinstance(dialer.credentials, Token) else ""
        self._token = bytes.fromhex(token) or NO_TOKEN
        self._address, self.welcome = Address(""), False
        self._socket: LoopSocket | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._numbers, self._pending = itertools.count(1), dict[int, _Pending]()
        self._credit, self._returned, self._greeting = Credit(Window()), asyncio.Event(), asyncio.Lock()

    def dial(self, address: Address) -> None:
        """Nothing happens if that is where the link leads."""
        if address == self._address:
            return
        check_endpoint(address.endpoint, secure=isinstance(self._dialer.credentials, KeyPair))
        self.close()
        dialer = self._dialer
        self._socket = dialling_socket(
            dialer.context, dialer.settings, address, credentials=dialer.credentials, routing_id=self._routing_id
        )
        self._address = address
        self._receiving = dialer.tasks.spawn(self._receive(self._socket))

    def close(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
        self.hang_up()
        self._hear(Kind.UNKNOWN, self._pending, ())

    def hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close(linger=0)

    async def ask(self, frames: Frames) -> Frames:
        number, size = next(self._numbers), sum(len(frame) for frame in frames)
        pending = self._pending[number] = _Pending()
        try:
            while True:
                await self._say_hello()
                await self._take_credit(number, size)
                await self._send(Kind.REQUEST, number, frames)
                if await self._is_answered(number, pending) and pending.reply is not None:
                    return pending.reply
        except _NotWelcome as answer:
            return answer.reply
        finally:
            del self._pending[number]

    async def _is_answered(self, number: int, pending: _Pending) -> bool:
        """False if the request must be sent again."""
        while True:
            match await pending.wait(self._dialer.settings.retry_seconds):
                case Kind.REPLY:
                    return True
                case Kind.LOST | Kind.UNKNOWN:
                    return False
                case None:
                    await self._send(Kind.PROBE, number)

    async def _say_hello(self) -> None:
        async with self._greeting:
            if self.welcome:
                return
            me, number, pending = self._dialer.me, next(self._numbers), _Pending()
            hello = encode(messages.Hello(me.job_id, me.generation, me.name, me.kernels))
            self._pending[number] = pending
            try:
                while pending.reply is None:
                    await self._send(Kind.HELLO, number, hello)
                    await pending.wait(self._dialer.settings.retry_seconds)
            finally:
                del self._pending[number]
            match decode(pending.reply):
                case messages.Welcome(num_bytes, num_requests), _:
                    self._credit, self.welcome = Credit(Window(num_bytes, num_requests)), True
                case _:
                    raise _NotWelcome(pending.reply)

    async def _take_credit(self, number: int, size: int) -> None:
        """Waits until the window has room. Bytes of requests that were given up come back when their replies do."""
        if size > self._credit.window.num_bytes:
            raise BadFrame(
                f"a message of {size} bytes to {self._peer}",
                why=f"the wire carries {self._credit.window.num_bytes} at a time",
                fix="cut the graph into more intervals",
            )
        while not self._credit.take(number, size):
            self._returned.clear()
            try:
                async with asyncio.timeout(self._dialer.settings.retry_seconds):
                    await self._returned.wait()
            except TimeoutError:
                for given_up in self._credit.numbers:
                    if given_up not in self._pending:
                        await self._send(Kind.PROBE, given_up)

    async def _send(self, kind: Kind, number: int, frames: Frames = ()) -> None:
        assert self._socket is not None
        await self._dialer.mischief.wait()
        for _ in range(self._dialer.mischief.copies()):
            try:
                parts = [seal(kind, number, self._token), *frames]
                self._socket.send(parts)
            except zmq.Again:
                # The peer does not read and the queue is full: as good as lost, and asked after like it.
                return
            except zmq.ZMQError as error:
                raise PeerClosed(f"the channel of {self._dialer.me.name} is closed", why=str(error)) from error

    async def _receive(self, socket: LoopSocket) -> None:
        while True:
            first, *frames = await socket.receive()
            if (envelope := unseal(first.bytes)) is not None:
                self._hear(envelope.kind, (envelope.number,), [received(frame) for frame in frames])

    def _hear(self, kind: Kind, numbers: Iterable[int], frames: Frames) -> None:
        if kind is Kind.UNKNOWN:
            self.welcome = False
        for number in numbers:
            if kind in {Kind.REPLY, Kind.LOST}:
                self._credit.give(number)
                self._returned.set()
            if (pending := self._pending.get(number)) is not None:
                pending.tell(kind, frames)

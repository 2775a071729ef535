"""The transport, seen from a role: request and reply with a deadline.

`Channel.request` asks a peer by name; `Answer` is what a role gives for a request. Here is the in-memory network that
joins roles in one process: every message is encoded and decoded as on a socket, and delay, loss and duplication can be
asked for. A request that is lost is repeated until its deadline, for all requests are idempotent.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from common.errors import BadFrame, DeadlineExceeded, DorylusError, PeerClosed, RequestRefused
from common.saga.arrays import Array
from common.wire import messages
from common.wire.frames import decode, encode

Reply = tuple[messages.Message, Sequence[Array]]
Answer = Callable[[str, messages.AnyMessage, list[Array]], Awaitable[Reply]]
"""(who asks, message, its buffers) -> reply and its buffers."""


class Channel(Protocol):
    async def request(
        self, peer: str, message: messages.Message, buffers: Sequence[Array] = (), *, deadline: float
    ) -> tuple[messages.AnyMessage, list[Array]]:
        """`deadline` in seconds. Raises DeadlineExceeded, PeerClosed, BadFrame."""
        ...


ROLES = ("parameter", "graph", "lambda", "launcher", "other")
"""In the order in which they name a link."""


@dataclass
class Traffic:
    """Bytes by link (`graph_graph`, `parameter_graph`, ...): raw row, weight and gradient buffers; all else."""

    payload: Counter[str] = field(default_factory=Counter)
    overhead: Counter[str] = field(default_factory=Counter)

    def count(self, sender: str, receiver: str, frames: Sequence[memoryview | bytes]) -> None:
        link = "_".join(sorted((_role(sender), _role(receiver)), key=ROLES.index))
        self.overhead[link] += len(frames[0])
        self.payload[link] += sum(len(frame) for frame in frames[1:])


def _role(name: str) -> str:
    role = name.rstrip("0123456789")
    return role if role in ROLES else ROLES[-1]


@dataclass(frozen=True)
class Faults:
    """Of the in-memory network; probabilities per message, delays in seconds."""

    max_delay: float = 0.0
    loss: float = 0.0
    duplication: float = 0.0
    seed: int = 0


RETRY_SECONDS = 0.05
"""How long a lost message goes unnoticed here."""


class InMemoryNetwork:
    """Joins the roles of one process. Names are a role and a number: graph0, parameter1, launcher0."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.traffic = Traffic()
        self._answers: dict[str, Answer] = {}
        self._faults = faults
        self._random = random.Random(faults.seed if faults else 0)

    def join(self, name: str, answer: Answer) -> "InMemoryChannel":
        self._answers[name] = refusing(answer)
        return InMemoryChannel(self, name)

    def leave(self, name: str) -> None:
        self._answers.pop(name, None)

    async def carry(self, sender: str, receiver: str, frames: list[memoryview | bytes]) -> list[memoryview | bytes]:
        """One request and its reply. Raises PeerClosed if nobody of that name has joined."""
        answer = self._answers.get(receiver)
        if answer is None:
            raise PeerClosed(f"{receiver} is not there", why=f"{sender} asked it", fix="look at its last words")
        self.traffic.count(sender, receiver, frames)
        reply = encode(*await answer(sender, *decode(frames)))
        self.traffic.count(receiver, sender, reply)
        return reply

    async def carry_with_faults(
        self, sender: str, receiver: str, frames: list[memoryview | bytes]
    ) -> list[memoryview | bytes]:
        faults = self._faults
        if faults is None:
            return await self.carry(sender, receiver, frames)
        while True:
            await asyncio.sleep(self._random.random() * faults.max_delay)
            if self._random.random() < faults.loss:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if self._random.random() < faults.duplication:
                await self.carry(sender, receiver, frames)
            reply = await self.carry(sender, receiver, frames)
            if self._random.random() < faults.loss:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            return reply


class InMemoryChannel:
    def __init__(self, network: InMemoryNetwork, name: str) -> None:
        self._network, self._name = network, name

    async def request(
        self, peer: str, message: messages.Message, buffers: Sequence[Array] = (), *, deadline: float
    ) -> tuple[messages.AnyMessage, list[Array]]:
        try:
            async with asyncio.timeout(deadline):
                frames = encode(message, buffers)
                return decode(await self._network.carry_with_faults(self._name, peer, frames))
        except TimeoutError as error:
            what = f"{peer} did not answer {type(message).__name__} of {self._name} within {deadline} s"
            raise DeadlineExceeded(what, fix="see whether it runs, and its last words") from error


M = TypeVar("M", bound=messages.Message)


def expect(reply: messages.AnyMessage, kind: type[M]) -> M:
    """The reply as the kind that was asked for. Raises RequestRefused with the peer's reason, or BadFrame."""
    if isinstance(reply, kind):
        return reply
    if isinstance(reply, messages.Refused):
        raise RequestRefused("a request was refused", why=reply.reason)
    if isinstance(reply, messages.Superseded):
        raise RequestRefused(
            "a request was refused",
            why=f"the asked role belongs to generation {reply.generation} of the job, and speaks to that one only",
        )
    raise BadFrame(f"the answer is {type(reply).__name__}", why=f"{kind.__name__} was expected")


def exactly(buffers: list[Array], count: int, of: str) -> list[Array]:
    """The buffers of a message that must have so many. Raises BadFrame otherwise."""
    if len(buffers) != count:
        raise BadFrame(f"{of} with {len(buffers)} buffers", why=f"it has {count}")
    return buffers


def refusing(answer: Answer) -> Answer:
    """The same answers, but an error of ours becomes a refusal that says it, so that one bad request harms nobody."""

    async def guarded(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        try:
            return await answer(peer, message, buffers)
        except DorylusError as error:
            return messages.Refused(str(error)), ()

    return guarded

"""What each link bears: MB/s, and processor seconds per GB of both ends together, over ipc and over CURVE.

    python benchmarks/transport.py [--quick] [--json FILE]

Two processes, the listener and the channel that roles use, with the messages and shapes of a training on Reddit's size:

    graph-graph        an interval's ghost rows go, a word comes back
    graph-lambda       a task's outputs go, the next task's inputs come back
    parameter-lambda   gradients go, the next weights come back

As many exchanges at once as a lease has slots. `word`: microseconds of one exchange without rows, one at a time.
Goals: every link bears twice what a Lambda function does, which is about 75 MB/s.
"""

import asyncio
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.goals import Goal, arguments, write
from common.passes import train
from common.saga.arrays import Array
from common.wire import messages
from common.wire.admission import Admission
from common.wire.channel import Channel, Reply
from common.wire.clients import GraphClient, ParameterClient
from common.wire.identity import Identity
from common.wire.keys import Address, Credentials, KeyPair, new_key_pair, new_token
from common.wire.zmq_channel import Dialer, Listener
from graph_server.role import SLOTS

JOB, DIALER = "transport", "lambda0"
LAMBDA_MB_PER_SECOND, TIMES = 75, 2
SECONDS, QUICK_SECONDS, WARM_UP_SECONDS = 4.0, 1.0, 0.3
DEADLINE = 60.0
ROWS, FEATURES, HIDDEN = 3300, 602, 128
"""Of an interval of the Reddit-size graph."""


@dataclass(frozen=True)
class Link:
    """out, back: shapes of the buffers of one exchange."""

    listener: str
    out: tuple[int, int]
    back: tuple[int, int]

    @property
    def num_bytes(self) -> int:
        return 4 * sum(rows * width for rows, width in (self.out, self.back))


LINKS: Mapping[str, Link] = {
    "graph-graph": Link("graph0", (ROWS, HIDDEN), (0, 0)),
    "graph-lambda": Link("graph0", (ROWS, HIDDEN), (ROWS, FEATURES)),
    "parameter-lambda": Link("parameter0", (FEATURES, HIDDEN), (FEATURES, HIDDEN)),
}


@dataclass(frozen=True)
class Measured:
    """cpu_seconds: of both ends. word_seconds: of an exchange without rows."""

    seconds: float
    num_bytes: int
    cpu_seconds: float
    word_seconds: float

    @property
    def mb_per_second(self) -> float:
        return self.num_bytes / 1e6 / self.seconds

    @property
    def cpu_per_gb(self) -> float:
        return self.cpu_seconds / (self.num_bytes / 1e9)


@dataclass(frozen=True)
class Place:
    """Where the listener listens, and what both ends show. keys: the listener's own; None on ipc."""

    endpoint: str
    credentials: Credentials
    keys: KeyPair | None


def measure(link: Link, *, secure: bool, seconds: float) -> Measured:
    with tempfile.TemporaryDirectory(prefix="dorylus-") as folder:
        place = Place("tcp://127.0.0.1:*", new_key_pair(), new_key_pair()) if secure else None
        place = place or Place(f"ipc://{folder}/{link.listener}", new_token(), None)
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=listen, args=(theirs, link, place))
        process.start()
        try:
            address = Address(ours.recv(), place.keys.public if place.keys else "")
            return asyncio.run(_measure(link, address, place.credentials, ours, seconds))
        finally:
            ours.close()
            process.join()


# ---- the listener's process


def listen(pipe: Connection, link: Link, place: Place) -> None:
    """Says where, then answers every word from the pipe with its processor seconds so far, until the pipe is closed."""
    asyncio.run(_listen(pipe, link, place))


async def _listen(pipe: Connection, link: Link, place: Place) -> None:
    admission, back = Admission(), np.ones(link.back, np.float32)
    admission.admit(DIALER, place.credentials.proof)

    async def answer(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        return _reply(message, back)

    me = Identity(JOB, 1, link.listener)
    async with Listener(me, answer, endpoint=place.endpoint, admission=admission, keys=place.keys) as listener:
        pipe.send(listener.endpoint)
        while await asyncio.to_thread(_is_open, pipe):
            pipe.send(_cpu_seconds())


def _is_open(pipe: Connection) -> bool:
    try:
        pipe.recv()
    except EOFError:
        return False
    return True


def _reply(message: messages.AnyMessage, back: Array) -> Reply:
    match message:
        case messages.TaskDone(pass_=pass_, position=position, interval=interval):
            return messages.Task(pass_, position, interval, 1, (), ("gathered0",)), [back]
        case messages.PullWeights(_, version):
            return messages.Weights(version, ("layer0.weight",)), [back]
    return messages.Done(), ()


# ---- the channel's


async def _measure(
    link: Link, address: Address, credentials: Credentials, listener: Connection, seconds: float
) -> Measured:
    async with Dialer(Identity(JOB, 1, DIALER), {link.listener: address}, credentials=credentials) as channel:
        exchange = _exchange(link, channel)
        await _for_a_while(exchange, WARM_UP_SECONDS, SLOTS)
        began, cpu = time.monotonic(), _cpu_seconds() + _cpu_of(listener)
        count = await _for_a_while(exchange, seconds, SLOTS)
        took, used = time.monotonic() - began, _cpu_seconds() + _cpu_of(listener) - cpu
        began = time.monotonic()
        words = await _for_a_while(lambda _: _word(link, channel), seconds / 4, 1)
        return Measured(took, count * link.num_bytes, used, (time.monotonic() - began) / words)


def _cpu_of(listener: Connection) -> float:
    listener.send(None)
    return float(listener.recv())


async def _for_a_while(exchange: Callable[[int], Awaitable[object]], seconds: float, at_once: int) -> int:
    """How many were done."""
    until, numbers = time.monotonic() + seconds, iter(range(1, 1 << 40))
    done = 0

    async def keep_on() -> None:
        nonlocal done
        while time.monotonic() < until:
            await exchange(next(numbers))
            done += 1

    await asyncio.gather(*(keep_on() for _ in range(at_once)))
    return done


def _exchange(link: Link, channel: Channel) -> Callable[[int], Awaitable[object]]:
    """One exchange with all its rows; it gets a number that grows."""
    block = np.ones(link.out, np.float32)
    graph, parameters = GraphClient(channel), ParameterClient(channel, num_parameter_servers=1)

    async def ghosts(number: int) -> None:
        await graph.send_ghosts(0, block, pass_=train(number), table="source1", interval=0)

    async def task(number: int) -> None:
        done = messages.TaskDone(1, 0, 0, number, train(1), 0, 0, ("projected1",), {}, 0.0, 0, 0)
        await channel.request(link.listener, done, [block], deadline=DEADLINE)

    async def weights(number: int) -> None:
        await parameters.push({"layer0.weight": block}, pass_=train(number), stage="ApplyVertex0", interval=0)
        await parameters.weights(number)

    if link.listener == "parameter0":
        return weights
    return task if link.back[0] else ghosts


async def _word(link: Link, channel: Channel) -> None:
    await channel.request(link.listener, messages.Beat(1, DIALER), deadline=DEADLINE)


def _cpu_seconds() -> float:
    """Of this process, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# ---- what it says


def rows_of(measured: Mapping[tuple[str, str], Measured]) -> list[dict[str, object]]:
    return [
        {
            "link": link,
            "transport": transport,
            "mb_per_second": m.mb_per_second,
            "cpu_seconds_per_gb": m.cpu_per_gb,
            "word_microseconds": 1e6 * m.word_seconds,
        }
        for (link, transport), m in measured.items()
    ]


def goals_of(measured: Mapping[tuple[str, str], Measured]) -> dict[str, Goal]:
    least = float(TIMES * LAMBDA_MB_PER_SECOND)
    return {f"{link} over {transport}, MB/s": Goal(m.mb_per_second, least) for (link, transport), m in measured.items()}


def show(measured: Mapping[tuple[str, str], Measured]) -> None:
    table = Table(title="links, two processes of this machine")
    for column in ("link", "transport", "MB/s", "CPU s per GB", "word, us"):
        table.add_column(column, justify="left" if column in ("link", "transport") else "right")
    for row in rows_of(measured):
        figures = (f"{row[name]:.2f}" if name == "cpu_seconds_per_gb" else f"{row[name]:.0f}" for name in list(row)[2:])
        table.add_row(str(row["link"]), str(row["transport"]), *figures)
    Console().print(table)


def main() -> None:
    given = arguments("What each link bears.").parse_args()
    seconds = QUICK_SECONDS if given.quick else SECONDS
    measured = {
        (name, "CURVE" if secure else "ipc"): measure(link, secure=secure, seconds=seconds)
        for name, link in LINKS.items()
        for secure in (False, True)
    }
    show(measured)
    write(given.json, goals_of(measured), rows_of(measured))


if __name__ == "__main__":
    main()

"""Sockets on a loop: every message arrives, whoever else uses the socket meanwhile."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from common.wire.loop_socket import LoopSocket

LONG = 60.0


@pytest.fixture
def raw(tmp_path: Path) -> "Iterator[tuple[zmq.Socket[bytes], zmq.Socket[bytes]]]":
    """A pair, joined."""
    context = zmq.Context()
    sockets = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    sockets[0].bind(f"ipc://{tmp_path}/s")
    sockets[1].connect(f"ipc://{tmp_path}/s")
    assert all(socket.poll(int(1000 * LONG), zmq.POLLOUT) for socket in sockets)
    yield sockets
    context.destroy(linger=0)


def test_messages_cross_in_both_directions_at_once(raw):
    """A send takes the word of libzmq's handle that something has arrived: it is found all the same."""

    async def one_side(socket: LoopSocket, count: int) -> list[int]:
        heard = []
        for number in range(count):
            socket.send([number.to_bytes(4)])
            if number % 3 == 0:
                await asyncio.sleep(0)
        while len(heard) < count:
            (frame,) = await socket.receive()
            heard.append(int.from_bytes(frame.bytes))
        return heard

    async def run() -> list[list[int]]:
        sockets = [LoopSocket(socket) for socket in raw]
        async with asyncio.timeout(LONG):
            found = await asyncio.gather(*(one_side(socket, 900) for socket in sockets))
        for socket in sockets:
            socket.close(linger=0)
        return found

    assert asyncio.run(run()) == [list(range(900))] * 2


def test_requests_and_replies_take_turns(raw):
    async def run() -> int:
        here, there = (LoopSocket(socket) for socket in raw)

        async def echo() -> None:
            while True:
                there.send([frame.bytes for frame in await there.receive()])

        async with asyncio.timeout(LONG):
            echoing, total = asyncio.create_task(echo()), 0
            for number in range(300):
                here.send([bytes([number % 256]), b"x" * 20_000])
                total += len((await here.receive())[1].bytes)
            echoing.cancel()
        here.close(linger=0)
        there.close(linger=0)
        return total

    assert asyncio.run(run()) == 300 * 20_000


def test_what_has_no_room_is_said_at_once():
    async def run() -> int:
        nobody = LoopSocket(zmq.Context.instance().socket(zmq.DEALER))  # connected to nothing
        try:
            nobody.send([b"x"])
        except zmq.Again:
            return 1
        finally:
            nobody.close(linger=0)
        return 0

    assert asyncio.run(run()) == 1


def test_a_closed_socket_is_watched_no_longer(raw):
    async def run() -> None:
        socket = LoopSocket(raw[0])
        waiting = asyncio.create_task(socket.receive())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
        socket.close(linger=0)
        socket.close(linger=0)
        assert waiting.cancelled()
        with pytest.raises(zmq.ZMQError):
            socket.send([b"x"])

    asyncio.run(run())

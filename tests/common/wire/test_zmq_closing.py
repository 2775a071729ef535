"""The end of a channel: nothing stays open, and every error says what it is."""

import asyncio
import os
import threading

import numpy as np
import pytest

from common.errors import PeerClosed, WireError
from common.wire.keys import Address
from tests.common.wire.wired import LONG, Room, rows_message, run

both = pytest.mark.parametrize("secure", [False, True], ids=["ipc", "curve"])


def test_an_address_in_use_is_an_error_that_leaves_nothing_behind():
    async def test(room: Room) -> None:
        async with room.listening():
            with pytest.raises(WireError, match="graph0 cannot listen on tcp://127"):
                async with room.listener():
                    raise AssertionError

    run(True, test)


def open_things() -> dict[str, int]:
    """Threads of Python and, where the system shows them, of libzmq, and what is open."""
    counts = {"python threads": threading.active_count()}
    for name in ("fd", "task"):
        if os.path.isdir(f"/proc/self/{name}"):
            counts[name] = len(os.listdir(f"/proc/self/{name}"))
    return counts


@both
@pytest.mark.parametrize("ends", ["well", "in an error", "cancelled"])
def test_nothing_is_left_open(secure, ends):
    async def work(room: Room) -> None:
        async with room.listening(), room.dialer() as channel, room.dialer("lease0", room.credentials()) as other:
            other.book["graph9"] = Address(room.book["graph0"].endpoint + "0", room.server.public)
            await channel.request("graph0", rows_message(), [np.zeros(100_000)], deadline=LONG)
            lost = asyncio.create_task(other.request("graph9", rows_message(), [np.zeros(100_000)], deadline=LONG))
            await asyncio.sleep(0)
            if ends == "in an error":
                raise PeerClosed("it ends here")
            if ends == "cancelled":
                asyncio.current_task().cancel()
                await asyncio.sleep(LONG)
            lost.cancel()

    async def test(room: Room) -> None:
        working = asyncio.create_task(work(room))
        await asyncio.wait([working])
        assert working.cancelled() == (ends == "cancelled")
        assert isinstance(None if working.cancelled() else working.exception(), PeerClosed) == (ends == "in an error")
        assert not list(room.folder.iterdir())

    run(secure, test)  # pyzmq keeps one thread for buffers that are sent without a copy, from the first on
    before = open_things()
    for _ in range(3):
        run(secure, test)
    assert open_things() == before


def test_an_error_of_the_block_comes_out_as_it_is():
    async def test(room: Room) -> None:
        with pytest.raises(PeerClosed, match="mine"):
            async with room.listening(), room.dialer():
                raise PeerClosed("mine")

    run(False, test)


def test_a_closed_channel_says_so():
    async def test(room: Room) -> None:
        async with room.listening():
            async with room.dialer() as channel:
                await channel.request("graph0", rows_message(), deadline=LONG)
            with pytest.raises(PeerClosed, match="the channel of graph1 is closed"):
                await channel.request("graph0", rows_message(), deadline=LONG)

    run(False, test)

"""Requests that take long, get lost, are too many or too large, or meet a listener that was started anew."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from common.errors import BadFrame, DeadlineExceeded
from common.wire import messages
from common.wire.admission import Admission
from common.wire.channel import Faults, Traffic
from common.wire.credit import Window
from common.wire.keys import Address
from common.wire.pace import Shaping
from common.wire.zmq_channel import ListenerOptions
from tests.common.wire.wired import GENERATION, LONG, QUICK, Room, echo, rows_message, run

both = pytest.mark.parametrize("secure", [False, True], ids=["ipc", "curve"])


def test_a_long_wait_keeps_nobody_waiting_and_is_not_sent_again():
    moved, traffic = asyncio.Event(), Traffic()

    async def answer(peer, message, buffers):
        if isinstance(message, messages.AwaitClock):
            await moved.wait()
        return messages.Rows(), buffers

    async def test(room: Room) -> None:
        async with room.listening(answer, ListenerOptions(QUICK, traffic)) as listener, room.dialer() as channel:
            waiting = asyncio.create_task(
                channel.request("graph0", messages.AwaitClock(GENERATION, 1), [np.ones(50_000)], deadline=LONG)
            )
            for _ in range(10):
                await channel.request("graph0", rows_message(), deadline=LONG)
                await asyncio.sleep(QUICK.retry_seconds)
            assert not waiting.done()
            moved.set()
            await waiting
            assert not listener.tally.repeated
        assert traffic.payload["graph_graph"] == 2 * 50_000 * 8

    run(False, test)


@both
def test_a_listener_that_is_started_anew_on_its_address_is_found(secure):
    began = asyncio.Event()

    async def never(peer, message, buffers):
        began.set()
        await asyncio.Event().wait()

    async def test(room: Room) -> None:
        async with room.dialer() as channel:
            async with room.listening(never):
                waiting = asyncio.create_task(
                    channel.request("graph0", rows_message(), [np.arange(30_000)], deadline=LONG)
                )
                await began.wait()
            async with room.listening(echo):
                _, (got,) = await waiting
                assert got.sum() == 29_999 * 15_000
                await channel.request("graph0", rows_message(), deadline=LONG)

    run(secure, test)


def test_a_new_address_in_the_book_is_dialled():
    async def test(room: Room) -> None:
        async with room.listening(), room.dialer() as channel:
            await channel.request("graph0", rows_message(), deadline=LONG)
            other = Room(False, room.folder / "b", room.server, Admission())
            other.folder.mkdir()
            other.admission.admit("graph1", channel.credentials.proof)
            async with other.listening() as moved:
                room.book["graph0"] = Address(moved.endpoint)
                await channel.request("graph0", rows_message(), deadline=LONG)

    run(False, test)


@both
@pytest.mark.parametrize("seed", range(3))
def test_delay_loss_and_duplication_change_no_answer(secure, seed):
    faults = Faults(max_delay=0.01, loss=0.2, duplication=0.2, seed=seed)

    async def test(room: Room) -> None:
        options = ListenerOptions(QUICK, faults=faults)
        async with room.listening(echo, options), room.dialer(faults=faults) as channel:
            asked = [channel.request("graph0", rows_message(n), [np.full(20 * n, n)], deadline=LONG) for n in range(30)]
            for n, (reply, (got,)) in enumerate(await asyncio.gather(*asked)):
                assert reply == messages.Rows()
                assert got.tolist() == [n] * 20 * n

    run(secure, test)


@both
def test_who_dials_waits_for_credit(secure):
    arrived, go = [], asyncio.Event()

    async def answer(peer, message, buffers):
        arrived.append(message.interval)
        await go.wait()
        return messages.Done(), ()

    async def test(room: Room) -> None:
        async with room.listening(answer) as listener, room.dialer() as channel:
            asked = [
                asyncio.create_task(
                    channel.request("graph0", rows_message(n), [np.zeros(size, np.uint8)], deadline=LONG)
                )
                for n, size in enumerate([60_000, 60_000, 10])
            ]
            await asyncio.sleep(5 * QUICK.retry_seconds)
            assert arrived == [0, 2]
            go.set()
            await asyncio.gather(*asked)
            assert not listener.tally.refused
        assert sorted(arrived) == [0, 1, 2]

    run(secure, test, Window(num_bytes=100_000))


def test_a_message_over_the_window_is_never_sent():
    async def test(room: Room) -> None:
        async with room.listening() as listener, room.dialer() as channel:
            with pytest.raises(BadFrame, match="the wire carries 100000 at a time"):
                await channel.request("graph0", rows_message(), [np.zeros(100_001, np.uint8)], deadline=LONG)
            await channel.request("graph0", rows_message(), deadline=LONG)
            assert not listener.tally.refused

    run(False, test, Window(num_bytes=100_000))


def test_a_reply_over_the_limit_is_a_refusal():
    async def answer(peer, message, buffers):
        return messages.Rows(), [np.zeros(100_001, np.uint8)]

    async def test(room: Room) -> None:
        settings = replace(QUICK, window=Window(num_bytes=100_000))
        async with (
            room.listening(answer, ListenerOptions(settings)),
            room.dialer(settings=settings) as channel,
        ):
            reply, _ = await channel.request("graph0", rows_message(), deadline=LONG)
            assert reply == messages.Refused("the reply has a buffer of 100001 bytes, the wire carries 100000")

    run(False, test)


def test_bytes_of_a_request_that_was_given_up_come_back():
    go = asyncio.Event()

    async def answer(peer, message, buffers):
        if message.interval == 0:
            await go.wait()
        return messages.Done(), ()

    async def test(room: Room) -> None:
        block = [np.zeros(60_000, np.uint8)]
        # The reply to what was given up is lost, too: only asking brings the bytes back.
        unlucky = ListenerOptions(QUICK, faults=Faults(loss=0.5, seed=1))
        async with room.listening(answer, unlucky) as listener, room.dialer() as channel:
            with pytest.raises(DeadlineExceeded):
                await channel.request("graph0", rows_message(0), block, deadline=0.2)
            asked = asyncio.create_task(channel.request("graph0", rows_message(1), block, deadline=LONG))
            await asyncio.sleep(3 * QUICK.retry_seconds)
            assert not asked.done()
            go.set()
            await asked
            assert not listener.tally.refused

    run(False, test, Window(num_bytes=100_000))


def test_shaping_slows_only_those_it_names():
    async def test(room: Room) -> None:
        options = ListenerOptions(QUICK, shaping={"lease": Shaping(latency_seconds=1000.0)})
        async with room.listening(echo, options), room.dialer("lease0") as slow, room.dialer() as quick:
            with pytest.raises(DeadlineExceeded):
                await slow.request("graph0", rows_message(), deadline=0.3)
            await quick.request("graph0", rows_message(), deadline=LONG)

    run(False, test)


def test_shaped_messages_arrive():
    async def test(room: Room) -> None:
        options = ListenerOptions(QUICK, shaping={"lease": Shaping(0.01, bytes_per_second=1e6)})
        loop = asyncio.get_running_loop()
        async with room.listening(echo, options), room.dialer("lease0") as slow:
            began = loop.time()
            await slow.request("graph0", rows_message(), [np.zeros(100_000, np.uint8)], deadline=LONG)
            # There and back: at least twice 0.1 s for the bytes and 0.01 s for the latency.
            assert loop.time() - began > 0.219

    run(False, test)

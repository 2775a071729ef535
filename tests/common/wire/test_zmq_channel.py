"""A listener and its peers, over ipc and over CURVE: what is asked is answered, and by whom it was asked is known."""

import asyncio
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from common.errors import DeadlineExceeded, PeerClosed, RequestRefused, WireError
from common.passes import train
from common.wire import messages
from common.wire.channel import InMemoryNetwork, Traffic, expect
from common.wire.identity import Identity
from common.wire.keys import Address, new_token
from common.wire.zmq_channel import Dialer, Listener, ListenerOptions
from tests.common.wire.wired import GENERATION, JOB, LONG, QUICK, Room, echo, rows_message, run

ROOT = Path(__file__).resolve().parents[3]
both = pytest.mark.parametrize("secure", [False, True], ids=["ipc", "curve"])


@both
def test_arrays_arrive_as_they_were(secure):
    arrays = [
        np.arange(1_000_000, dtype=np.float32).reshape(-1, 10),
        np.array([np.nan, -0.0, np.inf, 1e-310]),
        np.arange(7, dtype=np.uint8),
        np.arange(1023, dtype=np.int64).reshape(3, 341),
        np.zeros((0, 16), np.float32),
    ]

    async def test(room: Room) -> None:
        async with room.listening(), room.dialer() as channel:
            reply, received = await channel.request("graph0", rows_message(), arrays, deadline=LONG)
        assert reply == messages.Rows()
        for sent, got in zip(arrays, received, strict=True):
            assert (got.dtype, got.shape, got.tobytes()) == (sent.dtype, sent.shape, sent.tobytes())
            assert got.flags.aligned
            assert not got.flags.writeable

    run(secure, test)


@both
def test_who_asks_is_who_was_admitted_with_that_key(secure):
    async def answer(peer, message, buffers):
        return messages.Refused(peer), ()

    async def test(room: Room) -> None:
        hellos: list[tuple[str, str]] = []
        options = ListenerOptions(QUICK, on_hello=lambda name, hello: hellos.append((name, hello.kernels)))
        me = Identity(JOB, GENERATION, "lease7", kernels="SkylakeX")
        async with (
            room.listening(answer, options),
            room.dialer("graph1") as one,
            room.dialer("lease7", identity=me) as other,
        ):
            for channel, name in ((one, "graph1"), (other, "lease7"), (one, "graph1")):
                assert (await channel.request("graph0", rows_message(), deadline=LONG))[0] == messages.Refused(name)
        assert hellos == [("graph1", ""), ("lease7", "SkylakeX")]

    run(secure, test)


@both
def test_traffic_is_counted_as_in_memory(secure):
    requests = [(rows_message(i), [np.ones((i, 30_000), np.float32)]) for i in range(4)]
    network, traffic = InMemoryNetwork(), Traffic()

    async def test(room: Room) -> None:
        network.join("parameter0", echo)
        in_memory = network.join("graph1", echo)
        me = Identity(JOB, GENERATION, "parameter0")
        async with (
            Listener(
                me,
                echo,
                endpoint="tcp://127.0.0.1:*" if secure else f"ipc://{room.folder}/p",
                admission=room.admission,
                keys=room.server if secure else None,
                options=ListenerOptions(QUICK, traffic),
            ) as listener,
            room.dialer("graph1") as channel,
        ):
            room.book["parameter0"] = Address(listener.endpoint, room.server.public if secure else "")
            for message, buffers in requests:
                await in_memory.request("parameter0", message, buffers, deadline=LONG)
                await channel.request("parameter0", message, buffers, deadline=LONG)

    run(secure, test)
    assert traffic == network.traffic
    assert traffic.payload == {"parameter_graph": 2 * 6 * 30_000 * 4}


@both
def test_many_requests_are_answered_each_with_its_own_reply(secure):
    async def test(room: Room) -> None:
        async with room.listening(), room.dialer("graph1") as one, room.dialer("graph2") as other:

            async def ask(channel: Dialer, n: int) -> None:
                _, (got,) = await channel.request("graph0", rows_message(n), [np.full(n, n)], deadline=LONG)
                assert got.tolist() == [n] * n

            async with asyncio.TaskGroup() as group:
                for n in range(100):
                    group.create_task(ask(one if n % 2 else other, n))

    run(secure, test)


@both
def test_a_request_without_an_answer_ends_at_its_deadline_and_says_whose(secure):
    async def never(peer, message, buffers):
        await asyncio.Event().wait()

    async def test(room: Room) -> None:
        async with room.listening(never), room.dialer() as channel:
            with pytest.raises(DeadlineExceeded) as caught:
                await channel.request("graph0", rows_message(), deadline=0.3)
        assert caught.value.what == "graph0 did not answer GhostRows of graph1 within 0.3 s"
        assert "hello" not in str(caught.value)

    run(secure, test)


def test_a_peer_that_is_not_there_has_not_answered_the_hello_either():
    async def test(room: Room) -> None:
        room.book["graph0"] = Address(f"ipc://{room.folder}/nobody")
        async with room.dialer() as channel:
            with pytest.raises(
                DeadlineExceeded, match="it has not answered the hello: it is not there, or does not admit us"
            ):
                await channel.request("graph0", rows_message(), deadline=0.2)

    run(False, test)


def test_a_peer_that_is_not_in_the_book_is_closed():
    async def test(room: Room) -> None:
        async with room.dialer() as channel:
            with pytest.raises(PeerClosed, match="graph0 is not there\n  why: graph1 asked it"):
                await channel.request("graph0", rows_message(), deadline=LONG)

    run(False, test)


def test_an_answer_that_fails_is_a_refusal_and_the_role_goes_on():
    async def answer(peer, message, buffers):
        if message.interval == 0:
            return messages.Rows(), [buffers[0]]
        if message.interval == 1:
            raise DeadlineExceeded("no rows came")
        return messages.Rows(), ()

    async def test(room: Room) -> None:
        async with room.listening(answer), room.dialer() as channel:
            replies = [(await channel.request("graph0", rows_message(i), deadline=LONG))[0] for i in range(3)]
        assert isinstance(replies[0], messages.Refused)
        assert replies[0].reason.startswith("graph0 failed at GhostRows: IndexError: list index out of range")
        assert replies[1:] == [messages.Refused("no rows came"), messages.Rows()]
        with pytest.raises(RequestRefused, match="no rows came"):
            expect(replies[1], messages.Rows)

    run(False, test)


@both
def test_a_key_may_be_admitted_after_its_peer_has_dialled(secure):
    async def test(room: Room) -> None:
        credentials = room.credentials()
        async with room.listening(), room.dialer("lease3", credentials) as channel:
            if secure:
                with pytest.raises(DeadlineExceeded):
                    await channel.request("graph0", rows_message(), deadline=0.3)
            else:
                refused, _ = await channel.request("graph0", rows_message(), deadline=LONG)
                assert refused == messages.Refused("you are not on the list of this job's peers")
            room.admission.admit("lease3", credentials.proof)
            reply, _ = await channel.request("graph0", rows_message(), deadline=LONG)
            assert reply == messages.Rows()

    run(secure, test)


@both
def test_an_expelled_lease_is_heard_no_more(secure):
    async def test(room: Room) -> None:
        async with room.listening() as listener, room.dialer("lease3") as lease, room.dialer() as graph:
            await lease.request("graph0", rows_message(), deadline=LONG)
            room.admission.expel("lease3")
            with pytest.raises(DeadlineExceeded, match="graph0 did not answer GhostRows of lease3"):
                await lease.request("graph0", rows_message(), deadline=0.3)
            await graph.request("graph0", rows_message(), deadline=LONG)
            assert listener.tally.dropped[""] > 0

    run(secure, test)


@both
def test_another_generation_is_superseded(secure):
    async def test(room: Room) -> None:
        older = Identity(JOB, GENERATION - 1, "graph1")
        async with room.listening(), room.dialer(identity=older) as channel:
            for _ in range(2):
                reply, _ = await channel.request("graph0", rows_message(), deadline=LONG)
                assert reply == messages.Superseded(GENERATION)

    run(secure, test)


@pytest.mark.parametrize("me", [Identity("pubmed-1", GENERATION, "graph1"), Identity(JOB, GENERATION, "graph2")])
def test_another_job_or_name_is_refused(me):
    async def test(room: Room) -> None:
        async with room.listening(), room.dialer("graph1", identity=me) as channel:
            reply, _ = await channel.request("graph0", rows_message(), deadline=LONG)
            assert reply == messages.Refused(f"this is graph0 of job {JOB}, and you are graph1 to it")

    run(False, test)


@pytest.mark.parametrize(
    ("endpoint", "secure", "text"),
    [
        ("tcp://127.0.0.1:*", False, "the address tcp://127.0.0.1:\\* without keys"),
        ("ipc:///tmp/x", True, "the address ipc:///tmp/x with keys"),
        ("udp://127.0.0.1:5", False, "roles speak over ipc or tcp"),
        ("ipc:///tmp/" + "x" * 100, False, "an ipc path of 105 bytes"),
    ],
)
def test_an_address_that_will_not_do(endpoint, secure, text):
    room = Room(secure, Path("."))
    room.book["graph0"] = Address(endpoint, room.server.public)
    with pytest.raises(WireError, match=text):
        room.listener()

    async def dial() -> None:
        async with room.dialer() as channel:
            await channel.request("graph0", rows_message(), deadline=LONG)

    with pytest.raises(WireError, match=text):
        asyncio.run(dial())


CHILD = """
import asyncio, msgspec, sys
import numpy as np
from common.passes import train
from common.wire import messages
from common.wire.identity import Identity
from common.wire.keys import Address, KeyPair, Token
from common.wire.zmq_channel import Dialer

async def main():
    kind = KeyPair if sys.argv[1] == "curve" else Token
    credentials, address = msgspec.json.decode(sys.stdin.buffer.read(), type=tuple[kind, Address])
    async with Dialer(Identity(sys.argv[2], 3, "graph1"), {"graph0": address}, credentials=credentials) as channel:
        for n in range(50):
            block = np.full((n, 1000), n, np.float32)
            _, (got,) = await channel.request("graph0", messages.GhostRows(3, train(1), "h", n), [block], deadline=20)
            assert (got == block).all()

asyncio.run(main())
"""


@both
def test_two_processes(secure):
    async def test(room: Room) -> None:
        async with room.listening() as listener:
            start = [sys.executable, "-c", CHILD, "curve" if secure else "ipc", JOB]
            given = msgspec.json.encode((room.admitted("graph1"), room.book["graph0"]))
            child = await asyncio.create_subprocess_exec(
                *start, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            output, _ = await child.communicate(given)
            assert (child.returncode, output.decode()) == (0, "")
            assert not listener.tally.refused

    run(secure, test)


def test_a_dialer_says_what_its_hello_was_refused_for_after_a_token_was_mistyped():
    async def test(room: Room) -> None:
        async with room.listening(), room.dialer("graph1", new_token()) as channel:
            reply, _ = await channel.request("graph0", messages.PullRows(GENERATION, train(1), "h1", 0), deadline=LONG)
            with pytest.raises(RequestRefused, match="not on the list"):
                expect(reply, messages.Rows)

    run(False, test)

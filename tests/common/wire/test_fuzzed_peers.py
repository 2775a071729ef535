"""Floods, spoilt messages and noise: whoever behaves goes on undisturbed."""

import asyncio
import os
import random
import socket
import threading
from dataclasses import replace

import numpy as np
import pytest

from common.wire import messages
from common.wire.envelope import Kind, seal
from common.wire.frames import encode
from common.wire.zmq_channel import ListenerOptions
from tests.common.wire.wired import GENERATION, JOB, LONG, QUICK, RawPeer, Room, echo, rows_message, run, undisturbed

FUZZ_SECONDS = float(os.environ.get("DORYLUS_FUZZ_SECONDS", "1"))
"""Each of the fuzzing tests below. By hand: 600."""

both = pytest.mark.parametrize("secure", [False, True], ids=["ipc", "curve"])


def test_a_flood_leaves_room_for_others():
    async def test(room: Room) -> None:
        async with room.listening() as listener, room.dialer() as good, room.raw(None) as peer:
            async with undisturbed(good):
                for _ in range(2000):
                    await peer.send(b"x" * 100)
                    await asyncio.sleep(0)
            assert listener.tally.dropped[""] > 1000

    run(False, test)


@both
@pytest.mark.parametrize("heartbeat_ms", [0, 1])
def test_a_flood_that_hangs_up_harms_nobody(secure, heartbeat_ms):
    """Over this libzmq can abort the process, see sockets.py. Where nobody sends heartbeats the queue may be full."""
    busy = threading.Event()  # never set: the role's loop is blocked, as by a long computation

    async def test(room: Room) -> None:
        settings = QUICK if heartbeat_ms else replace(QUICK, receive_high_water=10)
        async with room.listening(echo, ListenerOptions(settings)), room.dialer() as good:
            for _ in range(5):
                async with room.raw(room.admitted("lease9"), heartbeat_ms=heartbeat_ms) as peer:
                    await peer.hello("lease9")
                    for _ in range(1000):
                        await peer.send(b"x" * 100)
                busy.wait(QUICK.heartbeat_seconds)
                await good.request("graph0", rows_message(), deadline=LONG)

    run(secure, test)


def mutated(source: random.Random, token: bytes) -> list[bytes]:
    """A good message, spoilt: bytes changed, frames cut, dropped, repeated or grown, or nothing but noise."""
    if source.random() < 0.1:
        return [source.randbytes(source.randrange(200)) for _ in range(source.randrange(1, 5))]
    kind = source.choice([Kind.REQUEST, Kind.REQUEST, Kind.REQUEST, *Kind])
    message = source.choice(
        [rows_message(), messages.PullWeights(GENERATION, 1), messages.Hello(JOB, GENERATION, "lease9")]
    )
    blocks = [np.arange(source.randrange(3000), dtype=np.float32) for _ in range(source.randrange(3))]
    frames = [seal(kind, source.randrange(2**64), token), *map(bytes, encode(message, blocks))]
    for _ in range(source.randrange(1, 4)):
        place = source.randrange(len(frames))
        frame = bytearray(frames[place])
        match source.randrange(6):
            case 0 | 1 if frame:
                for _ in range(source.randrange(1, 4)):
                    frame[source.randrange(len(frame))] = source.randrange(256)
            case 2:
                del frame[source.randrange(len(frame) + 1) :]
            case 3:
                frame += source.randbytes(source.randrange(50))
            case 4:
                frames.insert(place, bytes(frame))
            case 5 if len(frames) > 1:
                del frames[place]
                continue
        frames[place] = bytes(frame)
    return frames


@both
def test_fuzzed_messages_harm_nobody_else(secure):
    """The fuzzer is admitted again whenever it is struck, so that its messages go on being read."""

    async def fuzz(peer: RawPeer) -> int:
        source, loop, count = random.Random(17), asyncio.get_running_loop(), 0
        until = loop.time() + FUZZ_SECONDS
        while loop.time() < until:
            await peer.say(Kind.HELLO, 0, messages.Hello(JOB, GENERATION, "lease9"))
            for _ in range(5):
                await peer.send(*(mutated(source, peer.token) or [b""]))
            await asyncio.sleep(0)
            while await peer.socket.poll(0):
                await peer.socket.recv_multipart()
            count += 5
        return count

    async def test(room: Room) -> None:
        bad = room.admitted("lease9")
        struck: list[str] = []

        def admit_again(name: str, reason: str) -> None:
            struck.append(reason)
            room.admission.admit(name, bad.proof)

        options = ListenerOptions(QUICK, on_struck=admit_again)
        async with (
            room.listening(echo, options) as listener,
            room.dialer() as good,
            undisturbed(good),
            room.raw(bad) as peer,
        ):
            assert await fuzz(peer) > 100
        assert set(listener.tally.refused) <= {"lease9", ""}
        assert len(struck) > 3
        assert len({reason.split("\n")[0] for reason in struck}) > 2

    run(secure, test, limit=60 + FUZZ_SECONDS)


@both
def test_noise_below_the_protocol_harms_nobody_else(secure):
    """Bytes that are not ZeroMQ's at all, and greetings that break off."""
    greeting = bytes.fromhex("ff00000000000000017f03") + b"\x00" + b"CURVE" + bytes(15) + b"\x00" + bytes(31)

    def dial(endpoint: str) -> socket.socket:
        kind, _, place = endpoint.partition("://")
        if kind == "ipc":
            line = socket.socket(socket.AF_UNIX)
            line.connect(place)
            return line
        host, _, port = place.rpartition(":")
        return socket.create_connection((host, int(port)))

    def babble(endpoint: str, source: random.Random) -> None:
        with dial(endpoint) as line:
            line.settimeout(1)
            start = greeting[: source.randrange(len(greeting) + 1)] if source.random() < 0.8 else b""
            try:
                line.sendall(start + source.randbytes(source.randrange(2000)))
            except OSError:  # it has hung up on us, as it may
                return

    async def test(room: Room) -> None:
        source, loop = random.Random(23), asyncio.get_running_loop()
        async with room.listening() as listener, room.dialer() as good, undisturbed(good):
            until = loop.time() + FUZZ_SECONDS
            while loop.time() < until:
                await asyncio.to_thread(babble, listener.endpoint, source)
        assert not listener.tally.refused["graph1"]

    run(secure, test, limit=60 + FUZZ_SECONDS)

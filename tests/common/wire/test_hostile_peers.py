"""Peers that lie, steal or send what cannot be read harm themselves: whoever behaves goes on undisturbed."""

import asyncio
import traceback
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from common.errors import DeadlineExceeded, WireError
from common.wire import messages
from common.wire.credit import Window
from common.wire.envelope import Kind, seal
from common.wire.frames import encode
from common.wire.keys import Address, new_key_pair
from common.wire.zmq_channel import Dialer, ListenerOptions
from tests.common.wire.wired import GENERATION, JOB, LONG, QUICK, Room, echo, rows_message, run, undisturbed

both = pytest.mark.parametrize("secure", [False, True], ids=["ipc", "curve"])


@both
def test_three_bad_messages_strike_a_peer(secure):
    async def test(room: Room) -> None:
        told: list[tuple[str, str]] = []
        options = ListenerOptions(QUICK, on_struck=lambda name, reason: told.append((name, reason)))
        bad = room.admitted("lease9")
        async with (
            room.listening(echo, options) as listener,
            room.dialer() as good,
            undisturbed(good),
            room.raw(bad) as peer,
        ):
            assert isinstance(await peer.hello("lease9"), messages.Welcome)
            reasons = []
            for number in range(2, 5):
                await peer.send(seal(Kind.REQUEST, number, peer.token), b"no message")
                reasons.append((await peer.heard()).reason)
            assert reasons[0].startswith("a message that does not decode")
            assert reasons[2].endswith("; you are struck from the list")
            await peer.say(Kind.REQUEST, 5, rows_message())
            assert await peer.hears_nothing()
            assert room.admission.struck == ("lease9",)
            assert room.admission.name(bad.proof) is None
            assert (listener.tally.refused["lease9"], listener.tally.dropped[""]) == (3, 1)
        assert [name for name, _ in told] == ["lease9"]

    run(secure, test)


def test_a_struck_peer_that_dials_again_is_refused():
    async def test(room: Room) -> None:
        bad = room.admitted("lease9")
        async with room.listening(), room.dialer("lease9", bad) as channel:
            await channel.request("graph0", rows_message(), deadline=LONG)
            room.admission.strike("lease9")
            with pytest.raises(DeadlineExceeded):
                await channel.request("graph0", rows_message(), deadline=0.3)
        async with room.listening(), room.dialer("lease9", bad) as channel:
            reply, _ = await channel.request("graph0", rows_message(), deadline=LONG)
            assert reply == messages.Refused("you are not on the list of this job's peers")

    run(False, test)


BAD = {
    "no frames": [],
    "a truncated envelope": [seal(Kind.REQUEST, 2)[:-1]],
    "a kind of ours": [seal(Kind.REPLY, 2), b""],
    "no header": [seal(Kind.REQUEST, 2)],
    "a header cut short": [seal(Kind.REQUEST, 2), encode(rows_message())[0][:-1]],
    "fewer bytes than announced": [seal(Kind.REQUEST, 2), *encode(rows_message(), [np.ones(9)])[:1], b"x" * 71],
    "a buffer too few": [seal(Kind.REQUEST, 2), *encode(rows_message(), [np.ones(9)])[:1]],
    "a buffer too many": [seal(Kind.REQUEST, 2), *encode(rows_message()), b"x"],
    "an impossible shape": [
        seal(Kind.REQUEST, 2),
        msgspec.msgpack.encode([messages.Done(), [["float32", [0, 2**63]]]]),
        b"",
    ],
    "endless dimensions": [
        seal(Kind.REQUEST, 2),
        msgspec.msgpack.encode([messages.Done(), [["float32", [2**62] * 100_000]]]),
        b"",
    ],
    "a hello that is none": [seal(Kind.HELLO, 2), *encode(messages.Done())],
}


@pytest.mark.parametrize("frames", BAD.values(), ids=BAD.keys())
def test_each_malformed_message_is_refused_and_counted(frames):
    async def test(room: Room) -> None:
        async with room.listening() as listener, room.raw(room.admitted("lease9")) as peer:
            await peer.hello("lease9")
            await peer.send(*(frames or [b""]))
            assert isinstance(await peer.heard(), messages.Refused)
            assert listener.tally.refused == {"lease9": 1}

    run(True, test)


def test_a_message_that_no_listener_knows_is_not_a_fault_of_the_wire():
    async def test(room: Room) -> None:
        async with room.listening() as listener, room.raw(room.admitted("lease9")) as peer:
            await peer.say(Kind.REQUEST, 1, rows_message())
            assert await peer.heard() is Kind.UNKNOWN
            await peer.hello("lease9")
            await peer.say(Kind.PROBE, 7)
            assert await peer.heard() is Kind.LOST
            assert not listener.tally.refused

    run(False, test)


@both
def test_who_exceeds_its_credit_is_struck(secure):
    async def never(peer, message, buffers):
        await asyncio.Event().wait()

    async def test(room: Room) -> None:
        async with room.listening(never) as listener, room.raw(room.admitted("lease9")) as peer:
            await peer.hello("lease9")
            for number in range(2, 6):
                await peer.say(Kind.REQUEST, number, rows_message(), [np.zeros(60_000, np.uint8)])
            reasons = [(await peer.heard()).reason for _ in range(3)]
            assert "the window is 100000 bytes in 1024 requests" in reasons[0]
            assert room.admission.struck == ("lease9",)
            assert listener.tally.refused == {"lease9": 3}

    run(secure, test, Window(num_bytes=100_000))


def test_a_frame_over_the_limit_ends_its_connection_unread():
    async def test(room: Room) -> None:
        options = ListenerOptions(replace(QUICK, window=Window(num_bytes=1_000_000)))
        async with (
            room.listening(echo, options),
            room.dialer() as good,
            undisturbed(good),
            room.raw(room.admitted("lease9")) as peer,
        ):
            await peer.hello("lease9")
            await peer.say(Kind.REQUEST, 2, rows_message(), [np.zeros(5_000_000, np.uint8)])
            assert await peer.hears_nothing()

    run(True, test)


@both
def test_a_stolen_routing_id_is_refused_and_its_owner_goes_on(secure):
    async def test(room: Room) -> None:
        thief = room.admitted("lease9")
        async with room.listening() as listener, room.dialer() as owner:
            await owner.request("graph0", rows_message(), deadline=LONG)
            stolen = owner._links["graph0"]._routing_id
            async with undisturbed(owner), room.raw(thief, stolen) as peer:
                for number in range(1, 1000):
                    await peer.say(Kind.HELLO, number, messages.Hello(JOB, GENERATION, "lease9"))
                    await asyncio.sleep(0.01)
                    if room.admission.struck:
                        break
            assert room.admission.struck == ("lease9",)
            assert listener.tally.refused["lease9"] == 3
            await owner.request("graph0", rows_message(), deadline=LONG)

    run(secure, test)


def test_a_stolen_routing_id_without_a_token_harms_only_the_thief():
    async def test(room: Room) -> None:
        async with room.listening() as listener, room.dialer() as owner:
            await owner.request("graph0", rows_message(), deadline=LONG)
            async with undisturbed(owner), room.raw(None, owner._links["graph0"]._routing_id) as peer:
                while not listener.tally.dropped[""]:
                    await peer.say(Kind.REQUEST, 1, rows_message())
                    await asyncio.sleep(0.01)
            assert listener.tally.refused == {"": 3}
            assert room.admission.struck == ()

    run(False, test)


@pytest.mark.parametrize("who", ["no key", "a key that is not on the list", "a key of another job", "another server"])
def test_without_the_right_keys_nothing_is_heard(who):
    async def test(room: Room) -> None:
        other_job = Room(True, room.folder)
        credentials = {"no key": None, "another server": room.admitted("lease9")}.get(who, new_key_pair())
        if who == "a key of another job":
            credentials = other_job.admitted("graph1")
        async with (
            room.listening() as listener,
            other_job.listening(),
            room.dialer() as good,
            undisturbed(good),
        ):
            if who == "another server":
                address = Address(room.book["graph0"].endpoint, new_key_pair().public)
                async with Dialer(good.me, {"graph0": address}, credentials=credentials, settings=QUICK) as channel:
                    with pytest.raises(DeadlineExceeded, match="it is not there, or does not admit us"):
                        await channel.request("graph0", rows_message(), deadline=0.4)
            else:
                async with room.raw(credentials) as peer:
                    await peer.say(Kind.HELLO, 1, messages.Hello(JOB, GENERATION, "graph1"))
                    await peer.say(Kind.REQUEST, 2, rows_message())
                    assert await peer.hears_nothing()
            assert not listener.tally.refused
            assert not listener.tally.dropped

    run(True, test)


def test_a_token_of_another_job_is_refused():
    async def test(room: Room) -> None:
        async with room.listening() as listener, room.raw(room.credentials()) as peer:
            heard = []
            for number in range(1, 4):
                await peer.say(Kind.HELLO, number, messages.Hello(JOB, GENERATION, "graph1"))
                heard.append(await peer.heard())
            assert heard == [messages.Refused("you are not on the list of this job's peers")] * 3
            await peer.say(Kind.HELLO, 4, messages.Hello(JOB, GENERATION, "graph1"))
            assert await peer.hears_nothing()
            assert (listener.tally.refused, listener.tally.dropped) == ({"": 3}, {"": 1})

    run(False, test)


def told_with_locals(error: Exception) -> str:
    """As a tool would that shows every local variable, but for those of this test, which knows the secrets."""
    assert error.__traceback__ is not None
    inner = error.__traceback__.tb_next
    return "".join(traceback.TracebackException(type(error), error, inner, capture_locals=True).format())


@both
def test_no_secret_is_in_what_a_bad_run_says(secure, caplog):
    secrets: list[str] = []
    said: list[str] = []

    async def test(room: Room) -> None:
        bad, good = room.admitted("lease9"), room.admitted("graph1")
        secrets.extend([room.server.secret, bad.secret, good.secret])
        options = ListenerOptions(QUICK, on_struck=lambda name, reason: said.append(f"{name} {reason}"))
        async with room.listening(echo, options) as listener, room.raw(bad) as peer:
            await peer.hello("lease9")
            for number in range(3):
                await peer.send(seal(Kind.REQUEST, number, peer.token), peer.token, bad.secret.encode())
                said.append(str(await peer.heard()))
            channel = room.dialer("graph1", good)
            said.extend(map(repr, [listener, options, room.admission, channel, room, listener.tally, vars(channel)]))
            async with channel:
                try:
                    await channel.request("graph0", rows_message(), [np.ones(2, np.int16)], deadline=LONG)
                except WireError:
                    said.append(traceback.format_exc())
                room.admission.expel("graph1")
                try:
                    await channel.request("graph0", rows_message(), deadline=0.2)
                except DeadlineExceeded as error:
                    said.append(told_with_locals(error))

    run(secure, test)
    said.append(caplog.text)
    assert len(said) > 10
    shown = "\n".join(said)
    assert "lease9" in shown
    assert "credentials" in shown
    hidden = secrets + [repr(bytes.fromhex(s))[2:-1] for s in secrets if not secure and len(s) == 32]
    assert not [secret for secret in hidden if secret in shown]

"""The in-memory network: request and reply, deadlines, refusals, faults, and what is counted."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from common.errors import BadFrame, DeadlineExceeded, PeerClosed, RequestRefused, SpecError, TaskCrashed
from common.passes import train
from common.saga.arrays import Array
from common.wire import messages
from common.wire.channel import Answer, Faults, InMemoryChannel, InMemoryNetwork, Reply, exactly, expect, refusing

LONG = 30.0
"""A deadline that nobody is meant to reach."""
ROWS = np.arange(6, dtype=np.float32).reshape(3, 2)
GHOSTS = messages.GhostRows(1, train(1), "source1", 2)


async def echo(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
    return messages.Refused(f"{peer}: {type(message).__name__}"), buffers


def joined(answer: Answer, faults: Faults | None = None) -> tuple[InMemoryNetwork, InMemoryChannel]:
    """graph0 answers; the channel is graph1's."""
    network = InMemoryNetwork(faults)
    network.join("graph0", answer)
    return network, network.join("graph1", echo)


def run(request: Callable[[], Awaitable[Any]]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(60):
            return await request()

    return asyncio.run(limited())


def test_a_request_is_answered_by_whom_it_asks():
    _, channel = joined(echo)
    reply, (rows,) = run(lambda: channel.request("graph0", GHOSTS, [ROWS], deadline=LONG))
    assert reply == messages.Refused("graph1: GhostRows")
    np.testing.assert_array_equal(rows, ROWS)
    assert not rows.flags.writeable


def test_whom_nobody_knows_is_closed():
    network, channel = joined(echo)
    with pytest.raises(PeerClosed, match="parameter3 is not there") as error:
        run(lambda: channel.request("parameter3", messages.Done(), deadline=LONG))
    assert error.value.why == "graph1 asked it"
    network.leave("graph0")
    with pytest.raises(PeerClosed, match="graph0 is not there"):
        run(lambda: channel.request("graph0", messages.Done(), deadline=LONG))


def test_who_does_not_answer_in_time_exceeds_the_deadline():
    async def never(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError

    _, channel = joined(never)
    with pytest.raises(DeadlineExceeded, match="graph0 did not answer AwaitClock of graph1 within 0.05 s"):
        run(lambda: channel.request("graph0", messages.AwaitClock(1, 0), deadline=0.05))


def test_what_is_always_lost_exceeds_the_deadline():
    network, channel = joined(echo, Faults(loss=1.0))
    with pytest.raises(DeadlineExceeded):
        run(lambda: channel.request("graph0", messages.Done(), deadline=0.2))
    assert not network.traffic.overhead


def test_an_error_of_ours_is_a_refusal_that_says_it():
    async def fails(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        raise TaskCrashed("ApplyVertex0 raised", why="a hole in the floor", fix="mend it")

    _, channel = joined(fails)
    reply, _ = run(lambda: channel.request("graph0", messages.Done(), deadline=LONG))
    assert reply == messages.Refused("ApplyVertex0 raised\n  why: a hole in the floor\n  fix: mend it")
    with pytest.raises(RequestRefused, match="a hole in the floor"):
        expect(reply, messages.Done)


def test_a_bug_is_not_hidden_in_a_refusal():
    async def has_a_bug(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        return {}["reply"]

    with pytest.raises(KeyError):
        run(lambda: refusing(has_a_bug)("graph1", messages.Done(), []))


def test_a_buffer_that_the_wire_does_not_carry_is_not_sent():
    network, channel = joined(echo)
    with pytest.raises(BadFrame, match="a buffer of dtype int32"):
        run(lambda: channel.request("graph0", GHOSTS, [np.zeros(3, np.int32)], deadline=LONG))
    assert not network.traffic.overhead


# ---- what a reply is taken for


def test_the_expected_reply_is_given_back():
    reply = messages.Clock(3, train(2))
    assert expect(reply, messages.Clock) is reply


def test_another_reply_is_a_bad_frame():
    with pytest.raises(BadFrame, match="the answer is Rows") as error:
        expect(messages.Rows(), messages.Done)
    assert error.value.why == "Done was expected"


def test_a_newer_generation_is_a_refusal():
    with pytest.raises(RequestRefused, match="the asked role belongs to generation 4 of the job"):
        expect(messages.Superseded(4), messages.Done)


def test_a_message_has_exactly_its_buffers():
    assert exactly([ROWS], 1, "GhostRows") == [ROWS]
    with pytest.raises(BadFrame, match="GhostRows with 0 buffers"):
        exactly([], 1, "GhostRows")


# ---- faults


class Ledger:
    """Adds up what it is sent, once per interval: an idempotent request. `heard` counts repeats, too."""

    def __init__(self) -> None:
        self.sums: dict[int, float] = {}
        self.heard = 0

    async def answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        assert isinstance(message, messages.GhostRows)
        self.heard += 1
        self.sums.setdefault(message.interval, float(buffers[0].sum()))
        return messages.Rows(), [np.array([self.sums[message.interval]])]


def told(faults: Faults | None) -> tuple[Ledger, list[float]]:
    """40 requests, all at once; the answers in the order of the requests."""
    ledger = Ledger()
    _, channel = joined(ledger.answer, faults)

    async def requests() -> list[float]:
        sent = [
            channel.request("graph0", messages.GhostRows(1, train(1), "source1", i), [ROWS + i], deadline=LONG)
            for i in range(40)
        ]
        return [float(buffers[0][0]) for _, buffers in await asyncio.gather(*sent)]

    return ledger, run(requests)


@pytest.mark.parametrize(
    ("faults", "repeats"),
    [
        (Faults(max_delay=0.01, seed=1), False),
        (Faults(loss=0.3, seed=2), True),
        (Faults(duplication=0.5, seed=3), True),
        (Faults(max_delay=0.01, loss=0.2, duplication=0.3, seed=4), True),
    ],
)
def test_faults_change_neither_the_answers_nor_what_is_kept(faults: Faults, repeats: bool):
    plain, expected = told(None)
    ledger, answers = told(faults)
    assert answers == expected
    assert ledger.sums == plain.sums
    assert (ledger.heard > 40) is repeats


# ---- traffic


def test_payload_and_overhead_are_counted_by_link_in_both_directions():
    network = InMemoryNetwork()
    parameter, graph, launcher = (network.join(name, echo) for name in ("parameter1", "graph0", "launcher0"))

    async def speak() -> None:
        await graph.request("parameter1", messages.Done(), [ROWS], deadline=LONG)
        await parameter.request("graph0", messages.Done(), deadline=LONG)
        await launcher.request("graph0", messages.Done(), [ROWS, ROWS], deadline=LONG)

    run(speak)
    # Each payload goes there and, echoed, back.
    assert network.traffic.payload == {"parameter_graph": 2 * ROWS.nbytes, "graph_launcher": 4 * ROWS.nbytes}
    assert set(network.traffic.overhead) == {"parameter_graph", "graph_launcher"}
    assert all(bytes_ > 0 for bytes_ in network.traffic.overhead.values())


def test_what_came_to_nobody_is_not_counted():
    network, channel = joined(echo)
    with pytest.raises(PeerClosed):
        run(lambda: channel.request("graph9", GHOSTS, [ROWS], deadline=LONG))
    assert not network.traffic.payload


def test_refusing_lets_a_spec_error_through_as_its_text():
    async def fails(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        raise SpecError("lr = 0")

    assert run(lambda: refusing(fails)("graph1", messages.Done(), [])) == (messages.Refused("lr = 0"), ())

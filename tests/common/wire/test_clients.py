"""What roles ask of each other, over the in-memory network, against small stand-ins that remember what they heard."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from common.errors import BadFrame, RequestRefused
from common.passes import evaluate, train
from common.saga.arrays import Array
from common.sharding import shard
from common.wire import messages
from common.wire.channel import InMemoryNetwork, Reply
from common.wire.clients import GraphClient, ParameterClient

WEIGHTS = {
    "layer0.bias": np.arange(3, dtype=np.float32),
    "layer0.weight": np.arange(15, dtype=np.float32).reshape(5, 3),
    "layer1.weight": np.array([[7.0]], np.float32),
}


class Shard:
    """One of `count` parameter servers; it answers everything with `reply` if that is given."""

    def __init__(self, number: int, count: int, reply: messages.Message | None = None) -> None:
        self.rows, self.reply = shard(WEIGHTS, count, number), reply
        self.heard: list[messages.AnyMessage] = []
        self.pushed: dict[str, Array] = {}

    async def answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        self.heard.append(message)
        if self.reply is not None:
            return self.reply, ()
        match message:
            case messages.PullWeights(_, version):
                await asyncio.sleep(0)  # others get their turn, as on a network
                return messages.Weights(version, tuple(self.rows)), [row + version for row in self.rows.values()]
            case messages.PushGradients():
                self.pushed = dict(zip(message.names, buffers, strict=True))
            case messages.AwaitClock(_, seen):
                return messages.Clock(seen + 1, train(2)), ()
        return messages.Done(), ()


def clients(*shards: Shard, generation: int = 1) -> ParameterClient:
    network = InMemoryNetwork()
    for number, one in enumerate(shards):
        network.join(f"parameter{number}", one.answer)
    channel = network.join("graph0", Shard(0, 1).answer)
    return ParameterClient(channel, num_parameter_servers=len(shards), generation=generation)


def run(request: Callable[[], Awaitable[Any]]) -> Any:
    async def limited() -> Any:
        async with asyncio.timeout(60):
            return await request()

    return asyncio.run(limited())


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_weights_are_put_together_from_all_shards(count: int):
    client = clients(*(Shard(number, count) for number in range(count)))
    weights, fetched = run(lambda: client.weights(4))
    assert list(weights) == list(WEIGHTS)
    for name in WEIGHTS:
        np.testing.assert_array_equal(weights[name], WEIGHTS[name] + 4)
    assert fetched == sum(array.nbytes for array in WEIGHTS.values())


def test_a_version_is_fetched_once_however_many_ask_for_it():
    one = Shard(0, 1)
    client = clients(one)

    async def ask() -> list[int]:
        together = await asyncio.gather(*(client.weights(1) for _ in range(5)))
        return [fetched for _, fetched in together] + [(await client.weights(1))[1], (await client.weights(2))[1]]

    nbytes = sum(array.nbytes for array in WEIGHTS.values())
    assert run(ask) == [nbytes, 0, 0, 0, 0, 0, nbytes]
    assert one.heard == [messages.PullWeights(1, 1), messages.PullWeights(1, 2)]


def test_who_asks_first_for_what_was_fetched_ahead_is_told_its_bytes():
    one = Shard(0, 1)
    client = clients(one)

    async def ask() -> list[int]:
        await client.fetch_ahead(1)
        await client.fetch_ahead(1)
        return [(await client.weights(1))[1] for _ in range(2)]

    assert run(ask) == [sum(array.nbytes for array in WEIGHTS.values()), 0]
    assert one.heard == [messages.PullWeights(1, 1)]


def test_a_version_that_is_long_past_is_fetched_once_too():
    """The best weights, for the predictions."""

    async def ask() -> list[int]:
        client = clients(Shard(0, 1))
        return [(await client.weights(version))[1] for version in (6, 7, 8, 9, 2, 2, 9)]

    nbytes = sum(array.nbytes for array in WEIGHTS.values())
    assert run(ask) == [nbytes, nbytes, nbytes, nbytes, nbytes, 0, 0]


def test_weights_that_lack_updates_are_others_and_no_warm_container_keeps_them():
    one = Shard(0, 1)
    client = clients(one)

    async def ask() -> list[int]:
        return [(await client.weights(3, missing))[1] for missing in (0, 1, 1, 0, 2)]

    nbytes = sum(array.nbytes for array in WEIGHTS.values())
    assert run(ask) == [nbytes, nbytes, 0, 0, nbytes]
    assert one.heard == [messages.PullWeights(1, 3, missing) for missing in (0, 1, 2)]
    assert client.remembered()[0] == 3
    client.remember(4, WEIGHTS, missing=1)
    assert client.remembered()[0] == 3


def test_a_version_that_is_not_there_yet_holds_up_no_other():
    class Late(Shard):
        made = asyncio.Event()

        async def answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
            if message == messages.PullWeights(1, 2):
                await self.made.wait()
            return await super().answer(peer, message, buffers)

    async def ask() -> list[int]:
        client = clients(Late(0, 1))
        late = asyncio.create_task(client.weights(2))
        await asyncio.sleep(0)
        fetched = [(await client.weights(1))[1]]
        Late.made.set()
        return [*fetched, (await late)[1], (await client.weights(1))[1]]

    nbytes = sum(array.nbytes for array in WEIGHTS.values())
    assert run(ask) == [nbytes, nbytes, 0]


def test_a_fetch_that_nobody_waits_for_any_more_ends():
    class Never(Shard):
        async def answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
            await asyncio.Event().wait()
            raise AssertionError

    async def ask() -> set[asyncio.Task[Any]]:
        client = clients(Never(0, 1))
        before = asyncio.all_tasks()
        asking = [asyncio.create_task(client.weights(2)) for _ in range(2)]
        for task in asking:
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait(asking)
        await asyncio.sleep(0.01)
        return asyncio.all_tasks() - before

    assert run(ask) == set()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_gradients_go_to_every_shard_with_or_without_rows(count: int):
    shards = [Shard(number, count) for number in range(count)]
    client = clients(*shards, generation=3)
    sent = run(lambda: client.push(WEIGHTS, pass_=train(2), stage="∇ApplyVertex0", interval=5))
    assert sent == sum(array.nbytes for array in WEIGHTS.values())
    for number, one in enumerate(shards):
        assert one.heard == [messages.PushGradients(3, train(2), "∇ApplyVertex0", 5, tuple(sorted(WEIGHTS)))]
        for name, rows in shard(WEIGHTS, count, number).items():
            np.testing.assert_array_equal(one.pushed[name], rows)


def test_the_clock_is_asked_at_parameter_server_0():
    shards = [Shard(0, 2), Shard(1, 2)]
    client = clients(*shards)
    assert run(lambda: client.clock(6)) == messages.Clock(7, train(2))
    run(lambda: client.report(evaluate(1), 3, {"loss": 0.5}))
    assert shards[0].heard == [
        messages.AwaitClock(1, 6),
        messages.IntervalFinished(1, evaluate(1), 3, {"loss": 0.5}),
    ]
    assert not shards[1].heard


def test_a_version_is_kept_at_every_shard():
    shards = [Shard(0, 2), Shard(1, 2)]
    run(lambda: clients(*shards).keep(4, 2, shards=range(2)))
    assert [one.heard for one in shards] == [[messages.KeepVersion(1, 4, 2)]] * 2


REQUESTS: dict[str, Callable[[ParameterClient], Awaitable[Any]]] = {
    "weights": lambda client: client.weights(1),
    "push": lambda client: client.push(WEIGHTS, pass_=train(1), stage="∇ApplyVertex0", interval=0),
    "report": lambda client: client.report(train(1), 0, {}),
    "clock": lambda client: client.clock(0),
    "keep": lambda client: client.keep(1, None, shards=[0, 1]),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_refusal_is_raised_with_its_reason(request_: Callable[[ParameterClient], Awaitable[Any]]):
    client = clients(Shard(0, 2, messages.Refused("weights version 1 is gone")), Shard(1, 2))
    with pytest.raises(RequestRefused, match="weights version 1 is gone"):
        run(lambda: request_(client))


def test_a_refusal_of_any_shard_counts():
    client = clients(Shard(0, 2), Shard(1, 2, messages.Refused("not finite")))
    with pytest.raises(RequestRefused, match="not finite"):
        run(lambda: client.push(WEIGHTS, pass_=train(1), stage="∇ApplyVertex0", interval=0))
    with pytest.raises(RequestRefused, match="not finite"):
        run(lambda: client.weights(0))


def test_after_a_refusal_the_same_version_is_fetched_anew():
    one = Shard(0, 1, messages.Refused("not now"))
    client = clients(one)
    with pytest.raises(RequestRefused, match="not now"):
        run(lambda: client.weights(1))
    one.reply = None
    assert run(lambda: client.weights(1))[1] > 0


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_a_newer_generation_ends_the_request(request_: Callable[[ParameterClient], Awaitable[Any]]):
    client = clients(Shard(0, 2, messages.Superseded(9)), Shard(1, 2, messages.Superseded(9)))
    with pytest.raises(RequestRefused, match="generation 9"):
        run(lambda: request_(client))


# ---- graph servers


class Peer:
    """A graph server that has one row of 4."""

    def __init__(self, reply: messages.Message | None = None) -> None:
        self.reply = reply
        self.heard: list[tuple[messages.AnyMessage, list[Array]]] = []

    async def answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        self.heard.append((message, buffers))
        if self.reply is not None:
            return self.reply, ()
        if isinstance(message, messages.PullRows):
            return messages.Rows(), [np.full((1, 4), 2.5, np.float32)]
        return messages.Done(), ()


def graph_client(peer: Peer, generation: int = 1) -> GraphClient:
    network = InMemoryNetwork()
    network.join("graph2", peer.answer)
    return GraphClient(network.join("graph0", peer.answer), generation=generation)


def test_ghosts_are_sent_with_their_pass_and_the_bytes_are_counted():
    peer, block = Peer(), np.arange(6, dtype=np.float32).reshape(3, 2)
    client = graph_client(peer, generation=2)
    assert run(lambda: client.send_ghosts(2, block, pass_=train(3), table="source1", interval=7)) == block.nbytes
    ((message, buffers),) = peer.heard
    assert message == messages.GhostRows(2, train(3), "source1", 7)
    np.testing.assert_array_equal(buffers[0], block)


def test_rows_are_pulled():
    peer = Peer()
    rows = run(lambda: graph_client(peer).rows(2, "logits", pass_=evaluate(1), interval=3))
    assert peer.heard[0][0] == messages.PullRows(1, evaluate(1), "logits", 3)
    np.testing.assert_array_equal(rows, np.full((1, 4), 2.5))


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (messages.Refused("no such table"), RequestRefused),
        (messages.Superseded(2), RequestRefused),
        (messages.Clock(1, None), BadFrame),
    ],
)
def test_any_other_answer_is_an_error(reply: messages.Message, error: type[Exception]):
    client = graph_client(Peer(reply))
    with pytest.raises(error):
        run(lambda: client.send_ghosts(2, np.zeros((1, 1), np.float32), pass_=train(1), table="source1", interval=0))
    with pytest.raises(error):
        run(lambda: client.rows(2, "logits", pass_=train(1), interval=0))

"""Parameter servers in memory, and who asks them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from common.epoch_metrics import EpochMetrics
from common.passes import train
from common.saga.arrays import Array
from common.wire import messages
from common.wire.channel import InMemoryNetwork, Reply, refusing
from common.wire.clients import ParameterClient
from parameter_server.clock_events import ClockSettings
from parameter_server.clock_keeper import ClockKeeper
from parameter_server.optimizers import Sgd
from parameter_server.server import ParameterServer
from parameter_server.training_clock import TrainingClock
from parameter_server.weight_store import WeightStore

GENERATION, NUM_INTERVALS = 2, 2
WEIGHTS = {"layer0.bias": np.zeros(2, np.float32), "layer0.weight": np.ones((3, 2), np.float32)}
NAMES = tuple(WEIGHTS)
GRADIENTS = [np.full_like(rows, 0.25) for rows in WEIGHTS.values()]
STAGE = "∇ApplyVertex0"


def weight_store() -> WeightStore:
    return WeightStore(WEIGHTS, Sgd(1.0), NUM_INTERVALS, generation=GENERATION)


def parameter_server() -> ParameterServer:
    return ParameterServer(weight_store(), generation=GENERATION)


class Cluster:
    """`count` parameter servers that hold the same rows, the clock of `num_epochs` at number 0."""

    def __init__(self, count: int = 1, num_epochs: int = 2) -> None:
        self.network, self.epochs = InMemoryNetwork(), list[EpochMetrics]()
        stores = [weight_store() for _ in range(count)]
        self.servers = [ParameterServer(store, generation=GENERATION) for store in stores]
        for number, server in enumerate(self.servers):
            channel = self.network.join(f"parameter{number}", server.answer)
        client = ParameterClient(channel, num_parameter_servers=count, generation=GENERATION)
        clock = TrainingClock(ClockSettings(num_epochs=num_epochs), NUM_INTERVALS)
        self.keeper = ClockKeeper(clock, stores[0], client, num_shards=count, on_epoch=self.epochs.append)
        self.servers[0].keeper = self.keeper

    async def ask(self, message: messages.Message, *buffers: Array, of: int = 0) -> messages.Message:
        return (await self.ask_for_buffers(message, *buffers, of=of))[0]

    async def ask_for_buffers(self, message: messages.Message, *buffers: Array, of: int = 0) -> Reply:
        """As a graph server would: an error of ours is a refusal."""
        return await refusing(self.servers[of].answer)("graph0", message, list(buffers))  # type: ignore[arg-type]

    async def train(self, epoch: int) -> None:
        """Every interval's gradients to every parameter server."""
        for of in range(len(self.servers)):
            for interval in range(NUM_INTERVALS):
                assert await self.ask(push(epoch, interval), *GRADIENTS, of=of) == messages.Done()

    async def report(self, pass_: Any, sums: dict[str, float]) -> None:
        for interval in range(NUM_INTERVALS):
            message = messages.IntervalFinished(GENERATION, pass_, interval, sums)
            assert await self.ask(message) == messages.Done()
        await settled()


LOSS = {"loss": 1.0, "loss_weight": 2.0}
COUNTS = {f"{mask}_{what}": 1.0 for mask in ("train", "valid", "test") for what in ("correct", "count")}


def push(epoch: int, interval: int, names: tuple[str, ...] = NAMES) -> messages.PushGradients:
    return messages.PushGradients(GENERATION, train(epoch), STAGE, interval, names)


def during(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await scenario()

    asyncio.run(limited())


async def settled() -> None:
    """Whoever can go on has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


def refused(reply: messages.Message) -> str:
    assert isinstance(reply, messages.Refused), reply
    return reply.reason


# ---- who may speak

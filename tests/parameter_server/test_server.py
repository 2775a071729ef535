"""The parameter server's shell and its clock keeper: who waits is told, who is of another generation hears so."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from common.errors import RequestRefused, ScheduleError
from common.passes import evaluate, predict, train
from common.saga.arrays import Array
from common.wire import messages
from common.wire.channel import InMemoryNetwork, Reply, refusing
from common.wire.clients import ParameterClient
from parameter_server.clock_keeper import ClockKeeper
from parameter_server.epoch_metrics import EpochMetrics
from parameter_server.optimizers import Sgd
from parameter_server.server import ParameterServer
from parameter_server.training_clock import ClockSettings, ClockState, TrainingClock
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


def test_other_generations_are_told_which_one_this_is():
    async def scenario() -> None:
        cluster = Cluster()
        for generation in (1, 3):
            for message in (
                messages.PullWeights(generation, 0),
                messages.PushGradients(generation, train(1), STAGE, 0, NAMES),
                messages.IntervalFinished(generation, train(1), 0, {}),
                messages.AwaitClock(generation, 0),
                messages.AwaitEpochs(generation, 0),
                messages.RequestStop(generation),
                messages.KeepVersion(generation, 0, None),
            ):
                assert await cluster.ask(message) == messages.Superseded(GENERATION)
        assert (await cluster.ask_for_buffers(messages.PullWeights(GENERATION, 0)))[0].version == 0  # type: ignore[attr-defined]

    during(scenario)


@pytest.mark.parametrize("message", [messages.Done(), messages.PullRows(GENERATION, train(1), "logits", 0)])
def test_what_a_parameter_server_has_no_answer_to_is_refused(message: messages.Message):
    async def scenario() -> None:
        expected = f"this parameter server has no answer to {type(message).__name__}"
        assert refused(await Cluster().ask(message)) == expected

    during(scenario)


def test_only_parameter_server_0_keeps_the_clock():
    async def scenario() -> None:
        cluster = Cluster(count=2)
        for message in (
            messages.AwaitClock(GENERATION, 0),
            messages.AwaitEpochs(GENERATION, 0),
            messages.RequestStop(GENERATION),
            messages.IntervalFinished(GENERATION, train(1), 0, {}),
        ):
            assert "has no answer to" in refused(await cluster.ask(message, of=1))

    during(scenario)


# ---- gradients and weights


def test_who_pulls_a_version_waits_until_it_is_made():
    async def scenario() -> None:
        cluster = Cluster()
        pulled = asyncio.create_task(cluster.ask_for_buffers(messages.PullWeights(GENERATION, 1)))
        await cluster.ask(push(1, 1), *GRADIENTS)
        await settled()
        assert not pulled.done()
        await cluster.ask(push(1, 0), *GRADIENTS)
        reply, buffers = await pulled
        assert reply == messages.Weights(1, NAMES)
        for found, start in zip(buffers, WEIGHTS.values(), strict=True):
            np.testing.assert_array_equal(found, start - 0.5)

    during(scenario)


def test_a_repeated_push_is_answered_alike_and_counts_once():
    async def scenario() -> None:
        cluster = Cluster()
        for _ in range(3):
            assert await cluster.ask(push(1, 0), *GRADIENTS) == messages.Done()
        await cluster.train(1)
        assert await cluster.ask(push(1, 1), *GRADIENTS) == messages.Done()
        _, (bias, _) = await cluster.ask_for_buffers(messages.PullWeights(GENERATION, 1))
        np.testing.assert_array_equal(bias, [-0.5, -0.5])

    during(scenario)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_is_refused_with_its_name_and_number(value: float):
    async def scenario() -> None:
        cluster = Cluster()
        spoilt = [GRADIENTS[0], GRADIENTS[1] * np.array([[1, 1], [1, value], [1, 1]], np.float32)]
        for _ in range(2):
            reason = refused(await cluster.ask(push(1, 1), *spoilt))
            assert "gradient of layer0.weight, interval 1, train 1: 1 of 6 values are not finite" in reason
            assert "set a smaller training.lr" in reason
        await cluster.train(1)
        assert (await cluster.ask(messages.PullWeights(GENERATION, 1))) == messages.Weights(1, NAMES)

    during(scenario)


@pytest.mark.parametrize(
    ("message", "buffers", "why"),
    [
        (push(1, 0), GRADIENTS[:1], "PushGradients with 1 buffers"),
        (push(1, 0), [*GRADIENTS, GRADIENTS[0]], "PushGradients with 3 buffers"),
        (push(1, 0), GRADIENTS[::-1], "gradient of layer0.bias, interval 0: float32 (3, 2)"),
        (push(1, 0), [g.astype(np.float64) for g in GRADIENTS], "float64 (2,)"),
        (push(1, 9), GRADIENTS, "interval 9"),
        (push(1, 0, ("layer0.bias", "layer9.weight")), GRADIENTS, "layer9.weight"),
        (push(2, 0), GRADIENTS, "train 1 is open"),
    ],
)
def test_gradients_that_do_not_fit_are_refused(message: messages.PushGradients, buffers: list[Array], why: str):
    async def scenario() -> None:
        assert why in refused(await Cluster().ask(message, *buffers))

    during(scenario)


def test_a_version_is_kept_until_it_is_released():
    async def scenario() -> None:
        cluster = Cluster()
        await cluster.train(1)
        assert await cluster.ask(messages.KeepVersion(GENERATION, 1, None)) == messages.Done()
        for epoch in (2, 3, 4):
            await cluster.train(epoch)
        assert await cluster.ask(messages.PullWeights(GENERATION, 1)) == messages.Weights(1, NAMES)
        assert "weights version 2 is gone" in refused(await cluster.ask(messages.PullWeights(GENERATION, 2)))
        assert await cluster.ask(messages.KeepVersion(GENERATION, 4, 1)) == messages.Done()
        assert "weights version 1 is gone" in refused(await cluster.ask(messages.PullWeights(GENERATION, 1)))

    during(scenario)


# ---- the clock


async def walk(cluster: Cluster, num_epochs: int) -> None:
    for epoch in range(1, num_epochs + 1):
        await cluster.train(epoch)
        await cluster.report(train(epoch), LOSS)
        await cluster.report(evaluate(epoch), COUNTS)
    await cluster.report(predict(num_epochs, 1), {})


def test_who_waits_for_the_clock_hears_every_move():
    async def scenario() -> None:
        cluster, heard = Cluster(count=2), list[messages.Clock]()

        async def watch() -> None:
            seen = 0
            while not heard or heard[-1].ended is None:
                reply = await cluster.ask(messages.AwaitClock(GENERATION, seen))
                assert isinstance(reply, messages.Clock)
                heard.append(reply)
                seen = reply.ticks

        watching = asyncio.create_task(watch())
        await settled()
        assert not heard
        await cluster.keeper.start()
        await settled()
        await walk(cluster, 2)
        await watching
        opened = [train(1), evaluate(1), train(2), evaluate(2), predict(2, 1), None]
        assert [clock.pass_ for clock in heard] == opened
        assert [clock.ticks for clock in heard] == [1, 2, 3, 4, 5, 6]
        assert (heard[-1].ended, heard[-1].reason) == ("Completed", "all 2 epochs are done")
        assert [metrics.epoch for metrics in cluster.epochs] == [1, 2]
        assert cluster.keeper.stopped is not None
        assert cluster.keeper.stopped.best_version == 1

    during(scenario)


def test_who_asks_late_hears_what_is_open_now():
    async def scenario() -> None:
        cluster = Cluster()
        await cluster.keeper.start()
        await cluster.train(1)
        await cluster.report(train(1), LOSS)
        assert await cluster.ask(messages.AwaitClock(GENERATION, 0)) == messages.Clock(2, evaluate(1))

    during(scenario)


def test_a_repeated_report_is_answered_alike():
    async def scenario() -> None:
        cluster = Cluster()
        await cluster.keeper.start()
        await cluster.train(1)
        message = messages.IntervalFinished(GENERATION, train(1), 0, LOSS)
        for _ in range(2):
            assert await cluster.ask(message) == messages.Done()
        assert cluster.keeper.state.pass_ == train(1)
        await cluster.report(train(1), LOSS)
        assert await cluster.ask(message) == messages.Done()
        assert cluster.keeper.state.pass_ == evaluate(1)

    during(scenario)


def test_the_best_version_is_kept_everywhere_before_the_next_pass_opens():
    async def scenario() -> None:
        cluster = Cluster(count=2, num_epochs=4)
        await cluster.keeper.start()
        await walk(cluster, 4)
        for of in range(2):
            reply = await cluster.ask(messages.PullWeights(GENERATION, 1), of=of)
            assert reply == messages.Weights(1, NAMES)

    during(scenario)


def test_a_parameter_server_that_is_gone_is_named_when_a_version_is_to_be_kept():
    async def scenario() -> None:
        cluster = Cluster(count=2)
        await cluster.keeper.start()
        await cluster.train(1)
        await cluster.report(train(1), LOSS)
        cluster.network.leave("parameter1")
        await cluster.ask(messages.IntervalFinished(GENERATION, evaluate(1), 0, COUNTS))
        reply = await cluster.ask(messages.IntervalFinished(GENERATION, evaluate(1), 1, COUNTS))
        assert "parameter1 is not there" in refused(reply)

    during(scenario)


def test_a_report_that_cannot_be_is_refused_with_what_is_open():
    async def scenario() -> None:
        cluster = Cluster()
        await cluster.keeper.start()
        for pass_, interval in ((train(2), 0), (train(1), 7)):
            reply = await cluster.ask(messages.IntervalFinished(GENERATION, pass_, interval, LOSS))
            assert "open is train 1" in refused(reply)

    during(scenario)


def test_epochs_are_told_to_the_launcher_as_they_end():
    async def scenario() -> None:
        cluster = Cluster()
        await cluster.keeper.start()
        waiting = asyncio.create_task(cluster.ask(messages.AwaitEpochs(GENERATION, 0)))
        await walk(cluster, 2)
        first = await waiting
        assert isinstance(first, messages.Epochs)
        assert [epoch.epoch for epoch in first.epochs] == [1]
        rest = await cluster.ask(messages.AwaitEpochs(GENERATION, 1))
        assert isinstance(rest, messages.Epochs)
        assert [(epoch.epoch, epoch.loss) for epoch in rest.epochs] == [(2, 0.5)]
        assert (rest.ended, rest.best_version, rest.last_version) == ("Completed", 1, 2)

    during(scenario)


def test_a_stop_takes_effect_at_the_next_pause():
    async def scenario() -> None:
        cluster = Cluster(num_epochs=9)
        await cluster.keeper.start()
        assert await cluster.ask(messages.RequestStop(GENERATION)) == messages.Done()
        await walk(cluster, 1)
        assert cluster.keeper.stopped is not None
        assert cluster.keeper.stopped.state is ClockState.STOPPED
        assert [metrics.epoch for metrics in cluster.epochs] == [1]

    during(scenario)


def test_a_lost_role_ends_the_job_for_all_who_wait():
    async def scenario() -> None:
        cluster = Cluster()
        await cluster.keeper.start()
        waiting = asyncio.create_task(cluster.ask(messages.AwaitClock(GENERATION, 1)))
        await settled()
        await cluster.keeper.lost("graph1 stopped answering")
        assert await waiting == messages.Clock(2, None, "Failed", "graph1 stopped answering")

    during(scenario)


def test_a_loss_that_is_not_finite_fails_the_job():
    async def scenario() -> None:
        cluster = Cluster()
        await cluster.keeper.start()
        await cluster.train(1)
        await cluster.report(train(1), {"loss": float("nan"), "loss_weight": 1.0})
        assert cluster.keeper.state.ended == "Failed"
        assert "the training loss of epoch 1 is nan" in cluster.keeper.state.reason

    during(scenario)


def test_an_error_of_whoever_hears_the_epochs_is_raised():
    async def scenario() -> None:
        cluster = Cluster()

        def full(metrics: EpochMetrics) -> None:
            raise ScheduleError("no room for metrics")

        cluster.keeper._on_epoch = full
        await cluster.keeper.start()
        await cluster.train(1)
        await cluster.report(train(1), LOSS)
        client = ParameterClient(
            cluster.network.join("graph0", cluster.servers[0].answer), num_parameter_servers=1, generation=GENERATION
        )
        await client.report(evaluate(1), 0, COUNTS)
        with pytest.raises(RequestRefused, match="no room for metrics"):
            await client.report(evaluate(1), 1, COUNTS)

    during(scenario)

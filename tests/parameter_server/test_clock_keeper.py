"""The clock keeper: who waits for the clock is told, and what it says is done everywhere before the next pass opens."""

import asyncio

import pytest

from common.epoch_metrics import EpochMetrics
from common.errors import RequestRefused, ScheduleError
from common.passes import evaluate, predict, train
from common.wire import messages
from common.wire.clients import ParameterClient
from parameter_server.clock_events import ClockState
from tests.parameter_server.small_cluster import (
    COUNTS,
    GENERATION,
    LOSS,
    NAMES,
    Cluster,
    during,
    refused,
    settled,
)


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

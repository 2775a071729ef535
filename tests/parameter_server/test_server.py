"""The parameter server's shell: who waits is told, who is of another generation hears so."""

import asyncio

import numpy as np
import pytest

from common.passes import train
from common.saga.arrays import Array
from common.wire import messages
from tests.parameter_server.small_cluster import (
    GENERATION,
    GRADIENTS,
    NAMES,
    STAGE,
    WEIGHTS,
    Cluster,
    during,
    push,
    refused,
    settled,
)


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

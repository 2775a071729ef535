"""What a pass does not depend on, it does not wait for; what its end says, is so."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from common.errors import RequestRefused
from common.passes import train
from common.saga.arrays import Array
from common.wire import messages
from common.wire.channel import Answer, Reply
from graph_server.backends.base import TensorTask
from parameter_server.server import ParameterServer
from tests.conformance.backend_bench import NUM_INTERVALS, Bench, bench


def on_a_bench(work: Callable[[Bench], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), bench("local_cpu") as made:
            await work(made)

    asyncio.run(run())


def with_gradients(made: Bench, interval: int = 0) -> list[TensorTask]:
    """Of one interval, in order; the last one ends its pass."""
    *earlier, last = (task for task in made.tasks(train(1), interval) if made.gives_gradients(task))
    return [*earlier, replace(last, ends_pass=True)]


def when(answer: Answer, kind: type[messages.Message], before: Callable[[], Awaitable[object]]) -> Answer:
    async def changed(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        if isinstance(message, kind):
            await before()
        return await answer(peer, message, buffers)

    return changed


def intercept(made: Bench, kind: type[messages.Message], before: Callable[[], Awaitable[object]]) -> None:
    """On its way to parameter server 0."""
    made.network.join("parameter0", when(ParameterServer(made.stores[0]).answer, kind, before))


def test_outputs_are_given_while_their_gradients_are_on_the_way():
    async def work(made: Bench) -> None:
        task, may_go_on = with_gradients(made)[0], asyncio.Event()
        given = asyncio.get_running_loop().create_future()
        intercept(made, messages.PushGradients, may_go_on.wait)
        running = asyncio.create_task(made.backend.run(replace(task, give=given.set_result)))
        early = await given
        assert not running.done()
        assert made.stores[0].received(1) == 0
        may_go_on.set()
        assert await running is early
        assert made.stores[0].received(1) > 0

    on_a_bench(work)


def test_the_end_of_a_pass_is_given_when_all_its_gradients_are_there():
    """Also those of an earlier task, which are late."""

    async def work(made: Bench) -> None:
        first, *_, last = with_gradients(made)
        held_up, may_go_on, story = asyncio.Event(), asyncio.Event(), list[str]()

        async def hold_up_the_first() -> None:
            if not held_up.is_set():
                held_up.set()
                await may_go_on.wait()
                story.append("the first is let go")

        intercept(made, messages.PushGradients, hold_up_the_first)
        early = asyncio.create_task(made.backend.run(first))
        await held_up.wait()
        before = made.stores[0].received(1)
        end = asyncio.create_task(made.backend.run(replace(last, give=lambda _: story.append("the end is given"))))
        async with asyncio.timeout(30):
            while made.stores[0].received(1) == before:  # noqa: ASYNC110 (a store tells nobody)
                await asyncio.sleep(0.001)
        for _ in range(100):
            await asyncio.sleep(0)
        may_go_on.set()
        await asyncio.gather(early, end)
        assert story == ["the first is let go", "the end is given"]

    on_a_bench(work)


def test_the_next_weights_are_here_before_anybody_asks_for_them():
    async def work(made: Bench) -> None:
        asked: list[str] = []

        async def note() -> None:
            asked.append("weights")

        await asyncio.gather(*(walk(made, interval) for interval in range(NUM_INTERVALS)))
        intercept(made, messages.PullWeights, note)
        parameters = made.backend._options.parameters  # type: ignore[attr-defined]
        (_, first), (_, second) = await parameters.weights(1), await parameters.weights(1)
        assert first == sum(weight.nbytes for weight in made.weights.values())
        assert (second, asked) == (0, [])

    on_a_bench(work)


async def walk(made: Bench, interval: int) -> None:
    for task in with_gradients(made, interval):
        await made.backend.run(task)


def test_a_push_that_fails_fails_the_task_whose_outputs_were_given():
    async def work(made: Bench) -> None:
        task = with_gradients(made)[0]

        async def refuse() -> None:
            raise RequestRefused("no room")

        intercept(made, messages.PushGradients, refuse)
        with pytest.raises(RequestRefused, match="a request was refused"):
            await made.backend.run(task)

    on_a_bench(work)

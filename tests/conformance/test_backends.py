"""Every file in graph_server/backends/ is proven: wherever a tensor task runs, it is the same task.

A new backend is picked up by its name. What it may ask for is in backend_bench.py.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np
import pytest

from common import plugins
from common.errors import DorylusError
from common.passes import Pass, evaluate, predict, train
from common.saga.compute import TaskOutputs
from common.sharding import shard
from graph_server.backends.base import TaskResult, TensorTask
from parameter_server.optimizers import make_optimizer
from parameter_server.weight_store import GradientKey, WeightStore
from tests.conformance.backend_bench import NUM_INTERVALS, NUM_SHARDS, PACKAGE, Bench, bench

BACKENDS = plugins.names(PACKAGE)
pytestmark = pytest.mark.parametrize("name", BACKENDS)
SECONDS = 30


def on_a_bench(name: str, work: Callable[[Bench], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(SECONDS), bench(name) as made:
            await work(made)

    asyncio.run(run())


def same(rows: dict, expected: dict) -> bool:
    return rows.keys() == expected.keys() and all(np.array_equal(rows[name], expected[name]) for name in rows)


def check(outputs: TaskOutputs, expected: TaskOutputs) -> None:
    assert same(outputs.rows, expected.rows)
    assert all(outputs.rows[tensor].dtype == expected.rows[tensor].dtype for tensor in expected.rows)
    assert outputs.sums == expected.sums


def test_it_keeps_to_the_interface(name):
    async def work(made: Bench) -> None:
        assert isinstance(made.backend.name, str)
        assert made.backend.places >= 1
        assert all(isinstance(count, int) for count in made.backend.counts.values())

    on_a_bench(name, work)


@pytest.mark.parametrize("pass_", [train(1), evaluate(1), predict(1, 0)], ids=str)
def test_the_bits_are_those_of_compute(name, pass_):
    """Rows, sums and, in training, what reaches the parameter servers."""

    async def work(made: Bench) -> None:
        for task in made.tasks(Pass(pass_.epoch, pass_.kind, 0)):
            result = await made.backend.run(task)
            check(result.outputs, made.expected(task))
            assert result.ended >= result.started

    on_a_bench(name, work)


def test_the_weights_after_an_epoch_are_those_of_computes_gradients(name):
    """Of all intervals, at once; version 1 is there when the last task is done."""

    async def work(made: Bench) -> None:
        tasks = [task for task, _ in await all_intervals(made, train(1))]
        assert [store.version for store in made.stores] == [1] * NUM_SHARDS
        by_hand = next_weights(made, tasks)
        for number, store in enumerate(made.stores):
            assert same(dict(store.pull(1)), dict(by_hand[number].pull(1)))

    on_a_bench(name, work)


async def all_intervals(made: Bench, pass_: Pass) -> list[tuple[TensorTask, TaskResult]]:
    """As the scheduler does it: intervals at once, each one's tasks one after the other."""

    async def walk(interval: int) -> list[tuple[TensorTask, TaskResult]]:
        return [(task, await made.backend.run(task)) for task in made.tasks(pass_, interval)]

    walks = await asyncio.gather(*(walk(interval) for interval in range(NUM_INTERVALS)))
    return [done for walked in walks for done in walked]


def next_weights(made: Bench, tasks):
    """Fresh weight stores that get compute's gradients."""
    stores = [
        WeightStore(shard(made.weights, NUM_SHARDS, number), make_optimizer("adam", 0.01), NUM_INTERVALS)
        for number in range(NUM_SHARDS)
    ]
    for task in tasks:
        gradients = made.expected(task).gradients
        for number, store in enumerate(stores):
            for weight, rows in shard(gradients, NUM_SHARDS, number).items():
                store.push(GradientKey(1, task.pass_, str(task.step), task.interval, weight), rows)
    return stores


def test_gradients_are_pushed_before_outputs_are_given(name):
    async def work(made: Bench) -> None:
        with_gradients = [task for task in made.tasks(train(1)) if made.gives_gradients(task)]
        assert with_gradients
        for task in with_gradients:
            result = await made.backend.run(task)
            made.story.append("outputs")
            assert result.gradient_bytes == sum(g.nbytes for g in made.expected(task).gradients.values())
        pushes = [[f"gradients of {task.step}"] * NUM_SHARDS + ["outputs"] for task in with_gradients]
        assert made.story == [line for lines in pushes for line in lines]

    on_a_bench(name, work)


def test_a_repeat_is_harmless(name):
    async def work(made: Bench) -> None:
        for task in made.tasks(train(1)):
            first = await made.backend.run(task)
            before = made.received
            again = await made.backend.run(replace(task, attempt=2))
            check(again.outputs, first.outputs)
            assert made.received == before
        assert min(made.received) > 0

    on_a_bench(name, work)


def test_evaluation_pushes_nothing(name):
    async def work(made: Bench) -> None:
        for task in made.tasks(predict(1, 0)):
            assert (await made.backend.run(task)).gradient_bytes == 0
        assert made.story == []

    on_a_bench(name, work)


def test_intervals_at_once_do_not_disturb_each_other(name):
    async def work(made: Bench) -> None:
        for task, result in await all_intervals(made, predict(1, 0)):
            check(result.outputs, made.expected(task))

    on_a_bench(name, work)


def test_a_task_that_cannot_be_computed_is_an_error_of_ours(name):
    """It says which task and what went wrong."""

    async def work(made: Bench) -> None:
        task = made.tasks(train(1))[0]
        broken = replace(task, rows={tensor: rows[:, :-1] for tensor, rows in task.rows.items()})
        with pytest.raises(DorylusError) as error:
            await made.backend.run(broken)
        assert "ValueError" in str(error.value)

    on_a_bench(name, work)


def test_it_closes_cleanly(name):
    """No thread and no asyncio task is left, whether it worked or not."""

    async def worked(made: Bench) -> None:
        await made.backend.run(made.tasks(train(1))[0])

    async def did_not(made: Bench) -> None:
        pass

    before = set(threading.enumerate())
    for work in (worked, did_not):
        on_a_bench(name, work)
    left = [thread for thread in threading.enumerate() if thread not in before]
    for thread in left:
        thread.join(timeout=5)
    assert not [thread.name for thread in left if thread.is_alive()]

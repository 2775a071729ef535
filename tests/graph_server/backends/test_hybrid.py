"""Idle cores take tasks, busy ones leave them to leases; and wherever a task runs, its bits are the same."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from common.errors import TaskCrashed
from common.passes import evaluate, train
from common.wire import messages
from graph_server.backends.base import TaskResult, TensorTask
from graph_server.cores import Cores
from parameter_server.weight_store import WeightStore
from tests.conformance.backend_bench import NUM_INTERVALS
from tests.lambda_functions.small_cloud import Cloud, Luck, cloud, leases, on_this_machine, tasks, walk_all

PASSES = (train(1), evaluate(1), train(2))
NEVER = 1e6
"""Seconds of patience: no lease is opened."""


def in_a_cloud(luck: Luck, work: Callable[[Cloud], Awaitable[object]]) -> Cloud:
    async def run() -> Cloud:
        async with cloud(luck) as made:
            await work(made)
            return made

    return asyncio.run(run())


def busy_cores(total: int = 1) -> Cores:
    """All taken by graph stages."""
    cores = Cores(total)
    for _ in range(total):
        cores.enter()
    return cores


def first_task(interval: int = 0) -> TensorTask:
    return tasks(train(1), interval)[0]


def places(results: list[TaskResult]) -> Counter[str]:
    return Counter(result.place for result in results)


def test_an_idle_core_takes_the_task_and_no_lease_is_opened():
    async def work(made: Cloud) -> None:
        results = await walk_all(made.backend, train(1))
        assert places(results) == {"local_cpu": len(results)}

    made = in_a_cloud(Luck(cores=Cores(NUM_INTERVALS)), work)
    assert made.invocations == 0
    assert made.backend.counts["tasks_here"] == NUM_INTERVALS * len(tasks(train(1), 0))


def test_while_cores_are_busy_leases_take_them():
    async def work(made: Cloud) -> None:
        results = await walk_all(made.backend, train(1))
        assert places(results) == {"lambda": len(results)}

    made = in_a_cloud(Luck(cores=busy_cores()), work)
    assert made.backend.counts["tasks_here"] == 0


def test_a_core_is_taken_for_the_whole_task_and_left_again():
    cores = Cores(1)

    async def work(made: Cloud) -> None:
        both = await asyncio.gather(made.backend.run(first_task(0)), made.backend.run(first_task(1)))
        assert [result.place for result in both] == ["local_cpu", "lambda"]
        assert cores.has_idle

    in_a_cloud(Luck(cores=cores), work)


def test_what_no_lease_has_yet_is_taken_back_when_a_core_is_left():
    cores = busy_cores()

    async def work(made: Cloud) -> None:
        waiting = asyncio.create_task(made.backend.run(first_task()))
        await asyncio.sleep(0)
        assert not waiting.done()
        cores.leave()
        result = await waiting
        assert result.place == "local_cpu"
        assert cores.busy == 0

    made = in_a_cloud(Luck(cores=cores, leases=leases(open_after_seconds=NEVER)), work)
    assert (made.backend.counts["withdrawn"], made.backend.counts["tasks_here"], made.invocations) == (1, 1, 0)


def test_a_core_takes_back_one_task_at_a_time():
    cores = busy_cores()

    async def work(made: Cloud) -> None:
        waiting = [asyncio.create_task(made.backend.run(first_task(interval))) for interval in range(NUM_INTERVALS)]
        await asyncio.sleep(0)
        cores.leave()
        most = 0
        while not all(task.done() for task in waiting):
            await asyncio.sleep(0)
            most = max(most, cores.busy)
        assert most == 1

    made = in_a_cloud(Luck(cores=cores, leases=leases(open_after_seconds=NEVER)), work)
    assert made.backend.counts["withdrawn"] == NUM_INTERVALS


def test_a_task_whose_lease_dies_is_taken_back_though_nobody_leaves_a_core():
    cores = busy_cores()

    def at_its_result(lease: int, peer: str, message: messages.Message, replied: bool) -> bool:
        if isinstance(message, messages.TaskDone) and cores.busy:
            cores.leave()
        return isinstance(message, messages.TaskDone)

    async def work(made: Cloud) -> None:
        assert (await made.backend.run(first_task())).place == "local_cpu"

    made = in_a_cloud(Luck(cores=cores, kill=at_its_result), work)
    assert made.deaths >= 1


@pytest.mark.parametrize("total", [1, 2])
def test_the_bits_are_those_of_this_machine(total: int):
    async def work(made: Cloud) -> None:
        results = [result for pass_ in PASSES for result in await walk_all(made.backend, pass_)]
        assert set(places(results)) == {"local_cpu", "lambda"}
        async with on_this_machine() as (backend, stores):
            expected = [result for pass_ in PASSES for result in await walk_all(backend, pass_)]
            assert outputs(results) == outputs(expected)
            assert weights(made.stores) == weights(stores)

    in_a_cloud(Luck(cores=Cores(total)), work)


def outputs(results: list[TaskResult]) -> list[bytes]:
    return [rows.tobytes() for result in results for _, rows in sorted(result.outputs.rows.items())]


def weights(stores: list[WeightStore]) -> list[bytes]:
    newest = [store.pull(store.version) or {} for store in stores]
    return [rows.tobytes() for version in newest for _, rows in sorted(version.items())]


def test_an_error_here_is_the_tasks_error_and_the_core_is_left():
    cores = Cores(1)
    broken = replace(first_task(), rows={name: rows[:, :-1] for name, rows in first_task().rows.items()})

    async def work(made: Cloud) -> None:
        with pytest.raises(TaskCrashed, match="raised ValueError"):
            await made.backend.run(broken)

    in_a_cloud(Luck(cores=cores), work)
    assert cores.busy == 0

"""What the lambda backend tells of its tasks: where each ran, which attempt counted; and how many leases it wants."""

import asyncio
from collections.abc import Awaitable, Callable

from common.passes import train
from common.wire import messages
from graph_server.backends.base import TaskResult
from graph_server.schedule.stragglers import LateAfter
from tests.lambda_functions.small_cloud import Cloud, Luck, cloud, leases, tasks, walk_all


def in_a_cloud(luck: Luck, work: Callable[[Cloud], Awaitable[list[TaskResult]]]) -> tuple[list[TaskResult], Cloud]:
    async def run() -> tuple[list[TaskResult], Cloud]:
        async with cloud(luck) as made:
            return await work(made), made

    return asyncio.run(run())


async def one_epoch(made: Cloud) -> list[TaskResult]:
    return await walk_all(made.backend, train(1))


def test_a_first_attempt_says_so_and_where_it_ran():
    results, _ = in_a_cloud(Luck(), one_epoch)
    assert {(result.attempt, result.place) for result in results} == {(1, "lambda")}


def test_after_a_death_the_second_attempt_counts():
    dead: list[int] = []

    def at_the_first_result(lease: int, peer: str, message: messages.Message, replied: bool) -> bool:
        if isinstance(message, messages.TaskDone) and not dead:
            dead.append(lease)
        return lease in dead

    results, made = in_a_cloud(Luck(kill=at_the_first_result), one_epoch)
    assert {result.attempt for result in results} == {1, 2}
    assert made.backend.counts["lost_leases"] == 1


def test_a_straggler_of_the_first_wave_is_relaunched_by_the_prior():
    """Nothing was measured yet; its own result comes late, and is dropped."""

    async def work(made: Cloud) -> list[TaskResult]:
        answer, held = made.backend.answer, asyncio.Event()

        async def slow(message: messages.AnyMessage, buffers: list) -> object:
            if isinstance(message, messages.TaskDone) and message.lease == 0:
                await held.wait()
            return await answer(message, buffers)

        made.backend.answer = slow  # type: ignore[method-assign]
        results = await one_epoch(made)
        held.set()
        await asyncio.sleep(0.05)
        return results

    late = LateAfter(ratio=1000.0, floor_seconds=0.2, prior_seconds=0.3)
    results, made = in_a_cloud(Luck(leases=leases(late=late)), work)
    counts = made.backend.counts
    assert counts["relaunches"] >= 1
    assert counts["repeats"] >= 1
    assert counts["tasks"] == len(results)
    assert max(result.attempt for result in results) == 2


def test_bytes_of_constants_are_what_its_idleness_is_measured_by():
    async def work(made: Cloud) -> list[TaskResult]:
        results = [await made.backend.run(task) for task in tasks(train(1), 0)]
        read = {n: rows for task in tasks(train(1), 0) for n, rows in task.rows.items()}
        last = tasks(train(1), 0)[-1]
        assert made.backend._bytes_of_constants(last) == sum(
            rows.nbytes for name, rows in read.items() if name in made.backend._constants
        )
        return results

    in_a_cloud(Luck(), work)

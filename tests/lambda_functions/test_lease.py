"""A lease gives what this machine's own cores give, to the last bit, whatever befalls the functions that serve it."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np
import pytest

from common.errors import ClusterError, TaskCrashed
from common.passes import Pass, evaluate, train
from common.wire import messages
from common.wire.channel import Faults
from graph_server.backends.base import Invocation, TaskResult
from graph_server.schedule.stragglers import LateAfter
from lambda_functions.warm import WarmContainer
from parameter_server.weight_store import WeightStore
from tests.conformance.backend_bench import NUM_INTERVALS, NUM_SHARDS
from tests.lambda_functions.small_cloud import PROGRAMS, Cloud, Luck, cloud, leases, on_this_machine, tasks, walk_all

PASSES = (train(1), evaluate(1), train(2))
Bits = tuple[list[bytes], list[bytes]]


def bits(results: list[TaskResult], stores: list[WeightStore]) -> Bits:
    """Of all rows and sums that came, and of all weights."""
    outputs = [rows.tobytes() for result in results for _, rows in sorted(result.outputs.rows.items())]
    outputs += [np.float64(number).tobytes() for result in results for number in result.outputs.sums.values()]
    newest = [store.pull(store.version) or {} for store in stores]
    return outputs, [rows.tobytes() for weights in newest for _, rows in sorted(weights.items())]


@pytest.fixture(scope="module")
def expected() -> Bits:
    async def run() -> Bits:
        async with on_this_machine() as (backend, stores):
            results = [result for pass_ in PASSES for result in await walk_all(backend, pass_)]
            assert [store.version for store in stores] == [2] * NUM_SHARDS
            return bits(results, stores)

    return asyncio.run(run())


def in_a_cloud(luck: Luck, passes: tuple[Pass, ...] = PASSES) -> tuple[Bits, Cloud]:
    async def run() -> tuple[Bits, Cloud]:
        async with cloud(luck) as made:
            results = [result for pass_ in passes for result in await walk_all(made.backend, pass_)]
            return bits(results, made.stores), made

    return asyncio.run(run())


def test_the_bits_are_those_of_this_machine(expected: Bits):
    found, made = in_a_cloud(Luck())
    assert found == expected
    assert (made.invocations, made.backend.counts["lost_leases"], made.backend.counts["relaunches"]) == (2, 0, 0)
    assert made.asked["TaskLacks"] == 0


def test_constants_are_sent_once(expected: Bits):
    _, made = in_a_cloud(Luck())
    assert sorted(name for _, interval, name in made.constants if interval == 0) == sorted(constants_read())
    moved = [(interval, name) for _, interval, name in made.constants]
    assert len(moved) == len(set(moved)) == NUM_INTERVALS * len(constants_read())


def constants_read() -> set[str]:
    return {name for pass_ in PASSES for task in tasks(pass_, 0) for name in task.rows} & PROGRAMS.constants


def test_a_warm_container_keeps_constants_and_weights_from_lease_to_lease(expected: Bits):
    found, made = in_a_cloud(Luck(leases=leases(target=1, max_tasks=2)))
    assert found == expected
    assert made.invocations > 5
    moved = [(interval, name) for _, interval, name in made.constants]
    assert len(moved) == len(set(moved))
    assert made.asked["PullWeights"] == 2 * NUM_SHARDS, "a version is fetched once"


def test_a_lease_owns_the_intervals_whose_constants_it_got():
    _, made = in_a_cloud(Luck())
    leases_of = {interval: {lease for lease, i, _ in made.constants if i == interval} for interval in range(3)}
    assert all(len(owners) == 1 for owners in leases_of.values())


@pytest.mark.parametrize("notices", ["arrive", "are lost"])
def test_eviction_is_harmless(expected: Bits, notices: str, monkeypatch: pytest.MonkeyPatch):
    """The container has room for a few constants only; what the graph server believes it holds may be gone."""
    if notices == "are lost":
        monkeypatch.setattr(WarmContainer, "take_evicted", lambda container: ())
    largest = max(rows.nbytes for task in tasks(train(1), 0) for n, rows in task.rows.items() if n in constants_read())
    found, made = in_a_cloud(Luck(limit=largest + 1, leases=leases(target=1)))
    assert found == expected
    assert len(made.constants) > NUM_INTERVALS * len(constants_read())
    assert (made.asked["TaskLacks"] > 0) or notices == "arrive"


# ---- deaths


def at(kind: type[messages.Message], *, replied: bool, peer: str = "", times: int = 2, after: int = 0):
    """Kills at such requests, the first ones but `after`."""
    left, seen = [times], [0]

    def kill(lease: int, asked: str, message: messages.Message, has_replied: bool) -> bool:
        if not isinstance(message, kind) or has_replied is not replied or not asked.startswith(peer) or not left[0]:
            return False
        seen[0] += 1
        if seen[0] <= after:
            return False
        left[0] -= 1
        return True

    return kill


DEATHS = {
    "before the hello": at(messages.LeaseHello, replied=False),
    "when the hello is answered": at(messages.LeaseHello, replied=True),
    "when the first task arrives": at(messages.NextTask, replied=True),
    "while prefetching": at(messages.NextTask, replied=True, after=1),
    "before the weights": at(messages.PullWeights, replied=False),
    "before the gradients": at(messages.PushGradients, replied=False),
    "between the gradients' parts": at(messages.PushGradients, replied=True, peer="parameter0"),
    "between gradients and outputs": at(messages.TaskDone, replied=False),
    "when the outputs are taken, with the next task": at(messages.TaskDone, replied=True),
    "later, between gradients and outputs": at(messages.TaskDone, replied=False, after=7, times=4),
}


@pytest.mark.parametrize("where", DEATHS)
def test_a_death_loses_nothing(expected: Bits, where: str):
    found, made = in_a_cloud(Luck(kill=DEATHS[where]))
    assert found == expected
    assert made.deaths >= 1
    assert made.backend.counts["lost_leases"] == made.deaths


@pytest.mark.parametrize("seed", range(5))
def test_chaos_loses_nothing(expected: Bits, seed: int):
    """One request in ten kills, and messages come late, twice or not at all."""
    die = random.Random(seed)
    luck = Luck(
        kill=lambda lease, peer, message, replied: die.random() < 0.05,
        faults=Faults(max_delay=0.002, loss=0.05, duplication=0.1, seed=seed),
        limit=(1 << 20) if seed % 2 else 1000,
        leases=leases(max_tasks=5),
    )
    found, made = in_a_cloud(luck)
    assert found == expected
    assert made.deaths > 0


def test_a_function_that_hangs_is_relaunched_elsewhere(expected: Bits):
    """The first lease takes tasks and says nothing more."""

    async def run() -> tuple[Bits, Cloud]:
        late = LateAfter(ratio=50.0, floor_seconds=0.3, prior_seconds=0.3)
        async with cloud(Luck(leases=leases(late=late))) as made:
            answer = made.backend.answer

            async def deaf(message: messages.AnyMessage, buffers: list) -> object:
                if isinstance(message, messages.TaskDone) and message.lease == 0:
                    await asyncio.Event().wait()
                return await answer(message, buffers)

            made.backend.answer = deaf  # type: ignore[method-assign]
            results = [result for pass_ in PASSES for result in await walk_all(made.backend, pass_)]
            found = bits(results, made.stores)
            for function in list(made.backend._invocations):
                function.cancel()
            return found, made

    found, made = asyncio.run(run())
    assert found == expected
    assert made.backend.counts["relaunches"] >= 1
    assert made.backend.counts["lost_leases"] == 0


def test_throttled_invocations_are_tried_again(expected: Bits):
    found, made = in_a_cloud(Luck(ends=(Invocation.THROTTLED,) * 3))
    assert found == expected
    assert made.backend.counts["throttled"] == 3


# ---- errors


def failing(work: Callable[[Cloud], Awaitable[object]], luck: Luck | None = None) -> BaseException:
    async def run() -> BaseException:
        async with cloud(luck) as made:
            with pytest.raises((TaskCrashed, ClusterError)) as caught:
                await work(made)
            return caught.value

    return asyncio.run(run())


def test_an_error_of_the_tasks_own_code_ends_the_job_with_the_remote_traceback():
    task = tasks(train(1), 0)[0]
    broken = replace(task, rows={name: rows[:, :-1] for name, rows in task.rows.items()})
    error = failing(lambda made: made.backend.run(broken))
    assert isinstance(error, TaskCrashed)
    assert error.what == f"step {task.position} of interval 0 in train 1 failed 2 times"
    assert error.why.startswith("Traceback (most recent call last)")
    assert "in compute" in error.why
    assert "ValueError" in error.why


def test_a_gradient_that_is_not_finite_is_the_tasks_error_and_no_loss():
    task = tasks(train(1), 0)[-1]
    rows = {name: np.full_like(r, np.nan) if r.dtype == np.float32 else r for name, r in task.rows.items()}
    broken = replace(task, rows=rows)
    error = failing(lambda made: made.backend.run(broken))
    assert isinstance(error, TaskCrashed)
    assert "values are not finite" in error.why
    assert "set a smaller training.lr" in error.why


def test_functions_that_all_die_end_the_job():
    luck = Luck(kill=at(messages.LeaseHello, replied=False, times=1000), leases=leases(max_losses=5))
    error = failing(lambda made: walk_all(made.backend, train(1)), luck)
    assert isinstance(error, ClusterError)
    assert error.what == "6 leases were lost within 300 s"


def test_after_the_end_a_function_is_told_so():
    async def run() -> None:
        async with cloud() as made:
            await walk_all(made.backend, train(1))
            await made.backend.close()
            for message in (messages.NextTask(1, 0, 0, 9), messages.LeaseHello(1, 99, "", 0, ())):
                reply = await made.backend.answer(message, [])
                assert reply is not None
                assert isinstance(reply[0], messages.LeaseOver)

    asyncio.run(run())

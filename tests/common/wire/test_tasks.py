"""Requests that run side by side, and one alone."""

import asyncio

import pytest

from common.wire.tasks import together


async def result(of: int, *, after: asyncio.Event | None = None) -> int:
    if after is not None:
        await after.wait()
    return of


@pytest.mark.parametrize("count", [0, 1, 3])
def test_results_come_in_order(count: int):
    assert asyncio.run(together(result(n) for n in range(count))) == list(range(count))


def test_several_run_side_by_side():
    async def run() -> list[int]:
        there = asyncio.Event()

        async def opens() -> int:
            there.set()
            return 2

        async with asyncio.timeout(60):
            return await together([result(1, after=there), opens()])

    assert asyncio.run(run()) == [1, 2]


def test_one_alone_becomes_no_task():
    async def who() -> asyncio.Task[object] | None:
        return asyncio.current_task()

    async def run() -> tuple[asyncio.Task[object] | None, list[asyncio.Task[object] | None]]:
        return asyncio.current_task(), await together([who()])

    own, (found,) = asyncio.run(run())
    assert found is own
    assert found is not None


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_is_raised_as_it_is(count: int):
    async def fails() -> int:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        asyncio.run(together(fails() for _ in range(count)))

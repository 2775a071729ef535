"""Who uses the cores: how many, for how long, and that somebody has left."""

import asyncio

import pytest

from graph_server.cores import Cores


def test_a_core_is_idle_until_all_are_taken():
    cores = Cores(2)
    with cores.work():
        assert cores.has_idle
        with cores.work():
            assert not cores.has_idle
            with cores.work():
                assert (cores.busy, cores.has_idle) == (3, False)
        assert cores.has_idle
    assert cores.busy == 0


def test_whoever_fails_leaves_as_well():
    cores = Cores(1)
    with pytest.raises(ValueError, match="no"), cores.work():
        raise ValueError("no")
    assert cores.has_idle


def test_seconds_are_those_of_all_who_were_inside_per_core(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr("graph_server.cores.time.monotonic", lambda: now[0])
    cores = Cores(2)
    cores.enter()
    now[0] += 4.0
    cores.enter()
    now[0] += 1.0
    assert cores.seconds() == 3.0
    cores.leave()
    cores.leave()
    now[0] += 10.0
    assert cores.seconds() == 3.0


def test_one_hears_that_somebody_has_left():
    async def run() -> None:
        cores = Cores(1)
        cores.enter()
        waiting = asyncio.create_task(cores.left())
        await asyncio.sleep(0)
        assert not waiting.done()
        cores.leave()
        await waiting
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await cores.left()

    asyncio.run(run())

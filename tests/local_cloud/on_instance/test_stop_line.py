"""A wish to stop is heard whenever it comes, once."""

import asyncio
import threading

from local_cloud.on_instance.stop_line import StopLine


def heard(line: StopLine, *reasons: str) -> list[str]:
    """By a run that is asked by another thread while it goes."""
    told: list[str] = []

    async def run() -> None:
        line.stoppable(told.append)
        for reason in reasons:
            await asyncio.to_thread(line.ask, reason)
        await asyncio.sleep(0)

    asyncio.run(run())
    return told


def test_while_it_runs():
    assert heard(StopLine(), "stopped on request", "graph0 will be taken away") == ["stopped on request"]


def test_before_it_runs():
    line = StopLine()
    line.ask("early")
    assert heard(line) == ["early"]


def test_after_it_ran():
    line = StopLine()
    assert heard(line) == []
    thread = threading.Thread(target=line.ask, args=("late",))
    thread.start()
    thread.join()
    assert line.reason == "late"

"""The asyncio tasks of a socket: one TaskGroup that lives as long as it. An error in one of them ends its owner."""

import asyncio
from collections.abc import Coroutine, Iterable
from types import TracebackType
from typing import Any, TypeVar

Result = TypeVar("Result")


async def together(coroutines: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """All their results, in order; they run side by side. One alone becomes no task: that would take two more turns of
    the loop, and most jobs have one parameter server."""
    waiting = list(coroutines)
    if len(waiting) > 1:
        return list(await asyncio.gather(*waiting))
    return [await one for one in waiting]


class Tasks:
    """Opened and closed by the same asyncio task, which is cancelled if one of these fails."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        await self._group.__aenter__()

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._group.create_task(coroutine)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def close(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """With what `__aexit__` was given. Cancels what runs. Raises what failed in here, never what failed outside."""
        for task in list(self._running):
            task.cancel()
        # An error of the block goes its own way, not in a group; a cancellation is the TaskGroup's to judge.
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, trace)
        else:
            await self._group.__aexit__(None, None, None)

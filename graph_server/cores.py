"""Who uses the cores of this graph server? Its graph stages and, on some backends, tensor tasks say when they do.

Everybody calls it from the loop, so it needs no lock. There may be more inside than cores: then some wait.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Cores:
    def __init__(self, total: int) -> None:
        self.total, self.busy = total, 0
        self._seconds, self._seen = 0.0, time.monotonic()
        self._left = asyncio.Event()

    @property
    def has_idle(self) -> bool:
        return self.busy < self.total

    @contextmanager
    def work(self) -> Iterator[None]:
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        self._pass_time()
        self.busy += 1

    def leave(self) -> None:
        self._pass_time()
        self.busy -= 1
        self._left.set()

    def seconds(self) -> float:
        """Per core, since the beginning, of all that were inside or waited."""
        self._pass_time()
        return self._seconds / self.total

    async def left(self) -> None:
        """Returns when somebody has left since the last call."""
        await self._left.wait()
        self._left.clear()

    def _pass_time(self) -> None:
        now = time.monotonic()
        self._seconds += self.busy * (now - self._seen)
        self._seen = now

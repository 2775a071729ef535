"""A wish to stop, from whatever thread or time: the run hears it as soon as there is one."""

import asyncio
import threading
from collections.abc import Callable


class StopLine:
    """The first reason counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop: Callable[[str], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.reason = ""

    def stoppable(self, stop: Callable[[str], None]) -> None:
        """In the run's loop: `stop` ends it at its next pause."""
        with self._lock:
            self._stop, self._loop = stop, asyncio.get_running_loop()
            if self.reason:
                stop(self.reason)

    def ask(self, reason: str) -> None:
        with self._lock:
            if self.reason:
                return
            self.reason = reason
            if self._loop is not None and self._stop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._stop, reason)

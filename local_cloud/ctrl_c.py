"""What Ctrl-C and SIGTERM do while a job trains: the first ends it at the next pause, the second at once."""

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from local_cloud.observer import Observer

FIRST = "stopping after this epoch; press Ctrl-C again to stop at once"
TERMINATED = "stopping after this epoch; SIGTERM again stops at once"
REASONS = {signal.SIGINT: ("stopped by Ctrl-C", FIRST), signal.SIGTERM: ("stopped by SIGTERM", TERMINATED)}
"""What the run is told, and whoever watches."""


class CtrlC:
    """Around a run; does nothing in a thread that gets no signals. Hand `stoppable` to the run's Watch."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._stop: Callable[[str], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._run: asyncio.Task[Any] | None = None
        self._presses = 0
        self._is_holding = False
        self._before: dict[int, Any] = {}
        self._reason = self._note = ""

    def stoppable(self, stop: Callable[[str], None]) -> None:
        self._stop, self._loop, self._run = stop, asyncio.get_running_loop(), asyncio.current_task()
        if self._presses:  # the generation that was asked to stop was lost before it did
            stop(self._reason)

    def hold(self) -> None:
        """From now on what there is gets written: another press waits for that."""
        self._is_holding = True

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._pressed) for number in REASONS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        if self._is_holding:
            return
        self._presses += 1
        if self._presses == 1:
            self._reason, self._note = REASONS[signal.Signals(number)]
        if self._loop is None or self._loop.is_closed() or self._presses > 2:
            raise KeyboardInterrupt
        # A signal interrupts anything, such as a write to the terminal: what is to be done waits for the loop's turn.
        self._loop.call_soon_threadsafe(self._end_soon if self._presses == 1 else self._end_now)

    def _end_soon(self) -> None:
        assert self._stop is not None
        self._stop(self._reason)
        self._observer.note(self._note)

    def _end_now(self) -> None:
        if self._run is not None:
            self._run.cancel()

"""Rows of a table are not torn: kernels read it together, who publishes a block is alone. Writers go first.

A kernel call takes milliseconds and a block is one memcpy, so nobody waits long; how long is counted.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class TableLock:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = self._writers_waiting = 0
        self._is_writing = False
        self.waited = 0.0
        """Seconds, of all readers and writers."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._changed:
            self._wait_while(lambda: self._is_writing or self._writers_waiting > 0)
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._changed:
            self._writers_waiting += 1
            self._wait_while(lambda: self._is_writing or self._readers > 0)
            self._writers_waiting -= 1
            self._is_writing = True
        try:
            yield
        finally:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    def __deepcopy__(self, memo: object) -> "TableLock":
        """A copy of a table is another table."""
        return TableLock()

    def _wait_while(self, is_taken: Callable[[], bool]) -> None:
        if not is_taken():
            return
        began = time.monotonic()
        self._changed.wait_for(lambda: not is_taken())
        self.waited += time.monotonic() - began

"""The end of what a worker writes to stdout and stderr: what AWS sends back as the log tail.

Read by the event loop as it comes, so a worker never waits for a full pipe; `drain` takes what lies in the pipe now,
so that the tail of an answered invocation is whole.
"""

import asyncio
import os

TAIL_BYTES = 4096
READ_BYTES = 1 << 16
PIPE_BYTES = 1 << 20


class LogTail:
    """`write_end` goes to the worker; close it here once the worker has it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._tail = bytearray()
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop.add_reader(self._read_end, self._read)

    def clear(self) -> None:
        """What comes now belongs to another invocation."""
        self.drain()
        self._tail.clear()

    def add(self, line: str) -> None:
        self.drain()
        self._keep(line.encode())

    def tail(self) -> bytes:
        self.drain()
        return bytes(self._tail)

    def drain(self) -> None:
        """At most what a pipe can hold: a worker that never stops writing is not waited for."""
        for _ in range(PIPE_BYTES // READ_BYTES):
            if not self._read():
                return

    def close(self) -> None:
        """What was written stays."""
        self.drain()
        if self._read_end >= 0:
            self._loop.remove_reader(self._read_end)
            os.close(self._read_end)
            self._read_end = -1

    def _read(self) -> bool:
        if self._read_end < 0:
            return False
        try:
            piece = os.read(self._read_end, READ_BYTES)
        except BlockingIOError:
            return False
        if not piece:  # nobody is left who could write
            self._loop.remove_reader(self._read_end)
        self._keep(piece)
        return bool(piece)

    def _keep(self, piece: bytes) -> None:
        self._tail += piece
        del self._tail[:-TAIL_BYTES]

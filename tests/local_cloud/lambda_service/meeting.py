"""A socket at which a test meets a function in the middle of its work. Every wait has a deadline."""

import json
import socket
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

DEADLINE_SECONDS = 20.0


class Met:
    """One function that waits."""

    def __init__(self, there: socket.socket) -> None:
        self._there = there
        self._there.settimeout(DEADLINE_SECONDS)
        line = bytearray()
        while not line.endswith(b"\n"):
            line += self._there.recv(1)
        self.pid: int = json.loads(line)["pid"]

    def let_go(self) -> None:
        self._there.sendall(b"!")

    def wait_for_its_end(self) -> None:
        """Returns when its process, and all that shares the socket, is gone."""
        with suppress(ConnectionResetError):
            assert self._there.recv(1) == b""

    def answers(self, byte: bytes, *, within: float = DEADLINE_SECONDS) -> bool:
        self._there.sendall(byte)
        return self.hears(byte, within=within)

    def hears(self, byte: bytes, *, within: float = DEADLINE_SECONDS) -> bool:
        self._there.settimeout(within)
        try:
            return self._there.recv(1) == byte
        except TimeoutError:
            return False

    def last_byte_before_silence(self) -> bytes:
        """The first that is not answered. A busy machine needs a moment to stop a process: some still are."""
        end = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < end:
            for byte in (b"0", b"1", b"2"):
                if not self.answers(byte, within=0.3):
                    return byte
        raise AssertionError("it never falls silent")

    def close(self) -> None:
        self._there.close()


class Meeting:
    def __init__(self) -> None:
        self._door = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._door.settimeout(DEADLINE_SECONDS)
        self._met: list[Met] = []
        self.event: dict[str, Any] = {"port": self._door.getsockname()[1]}

    def __enter__(self) -> "Meeting":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._door.close()
        for met in self._met:
            met.close()

    def meet(self) -> Met:
        there, _ = self._door.accept()
        self._met.append(Met(there))
        return self._met[-1]

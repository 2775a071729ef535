"""A ZeroMQ socket on an asyncio loop: what is sent goes at once or not at all; what arrives is waited for.

pyzmq's own asyncio sockets make a future of every message in both directions and look at all their flags for each. A
training of a small graph is full of small messages, and that would be much of what they cost.
"""

import asyncio
from collections.abc import Sequence

import zmq


class LoopSocket:
    """Made in the loop that it serves; one reader at a time."""

    def __init__(self, socket: "zmq.Socket[bytes]") -> None:
        self.raw = socket
        self._handle, self._loop, self._news = socket.FD, asyncio.get_running_loop(), asyncio.Event()
        self._loop.add_reader(self._handle, self._news.set)

    def send(self, frames: Sequence[bytes | memoryview]) -> None:
        """Raises zmq.Again if there is no room, ZMQError if there is nobody or it is closed."""
        self.raw.send_multipart(frames, zmq.DONTWAIT, copy=False)
        # libzmq's handle tells of news once, and any call may have taken that word: the reader has to look again.
        self._news.set()

    async def receive(self) -> list[zmq.Frame]:
        """Does not suspend while messages wait."""
        while True:
            try:
                return self.raw.recv_multipart(zmq.DONTWAIT, copy=False)
            except zmq.Again:
                self._news.clear()
                await self._news.wait()

    def close(self, linger: int | None = None) -> None:
        """linger: milliseconds; None: as the socket was set."""
        if not self.raw.closed:
            self._loop.remove_reader(self._handle)
            self.raw.close(linger)

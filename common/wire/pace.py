"""A slow or bad network, made in the channel: latency and bandwidth of chosen peers; delay, loss and duplication.

In user space, so that it is the same on every system and can differ from peer to peer.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass

from common.wire.channel import Faults

MAX_LINKS = 4096
"""Peers come and go; the line of one that is long gone is forgotten."""


@dataclass(frozen=True)
class Shaping:
    """Of one peer's messages, each direction on its own. bytes_per_second: None: as many as there are."""

    latency_seconds: float = 0.0
    bytes_per_second: float | None = None


class SlowLink:
    """One direction: messages follow each other over a line of that bandwidth and arrive a latency later."""

    def __init__(self, shaping: Shaping) -> None:
        self._shaping, self._free_at = shaping, 0.0

    def seconds(self, size: int, now: float) -> float:
        """How long from now until these bytes have arrived."""
        rate = self._shaping.bytes_per_second
        self._free_at = max(self._free_at, now) + (size / rate if rate is not None else 0.0)
        return self._free_at + self._shaping.latency_seconds - now


class SlowLinks:
    """By the beginning of a peer's name; the longest that fits counts."""

    def __init__(self, shaping: Mapping[str, Shaping]) -> None:
        self._shaping = shaping
        self._links: dict[tuple[str, str], SlowLink] = {}

    def seconds(self, peer: str, direction: str, size: int, now: float) -> float:
        fitting = [prefix for prefix in self._shaping if peer.startswith(prefix)]
        if not fitting:
            return 0.0
        key = (peer, direction)
        if key not in self._links:
            self._links[key] = SlowLink(self._shaping[max(fitting, key=len)])
        if len(self._links) > MAX_LINKS:
            del self._links[next(iter(self._links))]
        return self._links[key].seconds(size, now)


class Mischief:
    """Draws what happens to each message."""

    def __init__(self, faults: Faults | None) -> None:
        self._faults, self._random = faults or Faults(), random.Random(faults.seed if faults else 0)

    async def wait(self) -> None:
        if self._faults.max_delay:
            await asyncio.sleep(self._random.random() * self._faults.max_delay)

    def copies(self) -> int:
        """0 if the message is lost, 2 if it is duplicated."""
        if self._random.random() < self._faults.loss:
            return 0
        return 2 if self._random.random() < self._faults.duplication else 1

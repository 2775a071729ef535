"""Dropout masks: pure functions of (seed, layer, interval, epoch), the same bits on every machine.

They come from the raw streams of Philox and splitmix64, whose bits never change, so a repeated task, another backend
or a kernel that fuses the mask draws the same one. Golden vectors stand in the tests.
"""

import hashlib
import struct

import numpy as np

from common.saga.arrays import Array

ATTENTION_HEADS_PER_KEY = 8
"""One splitmix64 word decides for eight heads: one byte each."""


def threshold(rate: float) -> int:
    """A byte below this is dropped; `rate` is so rounded to 1/256."""
    return round(256 * rate)


def scale(rate: float) -> float:
    """What a kept value is multiplied by, so that the expectation stays."""
    return 256 / (256 - threshold(rate))


def stream_key(seed: int, layer: int, interval: int) -> bytes:
    """Philox's two words, little-endian."""
    return hashlib.blake2b(struct.pack("<3q", seed, layer, interval), digest_size=16).digest()


def keep_mask(shape: tuple[int, int], rate: float, *, seed: int, layer: int, interval: int, epoch: int) -> Array:
    """bool [rows, width]; column k of row r is byte r · width + k of the interval's stream.

    The epoch lies in the highest word of the counter: streams of neighbouring low counters overlap.
    """
    key = int.from_bytes(stream_key(seed, layer, interval), "little")
    philox = np.random.Philox(key=key, counter=epoch << 192)
    count = shape[0] * shape[1]
    raw = philox.random_raw((count + 7) // 8).astype("<u8", copy=False).view(np.uint8)
    return (raw[:count] >= threshold(rate)).reshape(shape)


def attention_key(seed: int, epoch: int, layer: int, head: int) -> int:
    """The uint64 K of splitmix64(splitmix64(K + source) + target), shared by eight neighbouring heads."""
    packed = struct.pack("<4q", seed, epoch, layer, head // ATTENTION_HEADS_PER_KEY)
    return int.from_bytes(hashlib.blake2b(packed).digest()[:8], "little")


class Masks:
    """The masks of one task. A task draws each mask once, though forward and vjp both ask for it."""

    def __init__(self, *, seed: int, interval: int, epoch: int, training: bool) -> None:
        self.seed, self.interval, self.epoch, self.training = seed, interval, epoch, training
        self._drawn: dict[tuple[int, tuple[int, int]], Array] = {}

    def drop(self, x: Array, rate: float, layer: int) -> Array:
        """x times scale where kept, times 0 where dropped; x itself outside training. Its own vjp, too."""
        if not self.training or threshold(rate) == 0:
            return x
        where = (layer, (x.shape[0], x.shape[1]))
        if where not in self._drawn:
            self._drawn[where] = keep_mask(
                where[1], rate, seed=self.seed, layer=layer, interval=self.interval, epoch=self.epoch
            )
        # The mask first: whatever is written next lies in the cache, and nothing is converted piece by piece.
        dropped: Array = self._drawn[where].astype(x.dtype)
        dropped *= x.dtype.type(scale(rate))
        dropped *= x
        return dropped

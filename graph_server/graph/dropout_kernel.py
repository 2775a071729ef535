# mypy: ignore-errors
"""Dropout without the interpreter's lock, which NumPy holds while it draws: bit for bit what `Masks.drop` gives.

Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", Philox4x64-10; NumPy counts before it draws.
"""

import numpy as np

from common.saga.masks import Masks, scale, stream_key, threshold
from graph_server.graph.compiling import kernel
from graph_server.graph.vectors import high_product

_M0, _M1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_W0, _W1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_ROUNDS, _WORDS = 10, 4


class QuickMasks(Masks):
    """Keeps a byte per value of what it has drawn: that forward and vjp ask for it, or two tensors, costs one draw."""

    def drop(self, x, rate, layer):
        if not self.training or threshold(rate) == 0:
            return x
        dropped, number = np.empty(x.shape, x.dtype), x.dtype.type
        keeps = np.uint8(threshold(rate)), number(scale(rate)), number(0)
        keep_values(np.ascontiguousarray(x).reshape(-1), self._stream(layer, x.shape), keeps, dropped.reshape(-1))
        return dropped

    def _stream(self, layer, shape):
        if (layer, shape) not in self._drawn:
            words = np.empty(_WORDS * -(-shape[0] * shape[1] // (8 * _WORDS)), np.uint64)
            key = np.frombuffer(stream_key(self.seed, layer, self.interval), "<u8")
            draw(words, *key, np.uint64(self.epoch))
            self._drawn[layer, shape] = words.astype("<u8", copy=False).view(np.uint8)
        return self._drawn[layer, shape]


@kernel()
def draw(words, key0, key1, epoch):
    """Fill whole blocks of four words with the stream of a key and an epoch."""
    for block in range(len(words) // _WORDS):
        c0, c1, c2, c3 = np.uint64(block + 1), np.uint64(0), np.uint64(0), epoch
        k0, k1 = key0, key1
        for _ in range(_ROUNDS):
            h0, h1 = high_product(_M0, c0), high_product(_M1, c2)
            c0, c1, c2, c3 = h1 ^ c1 ^ k0, _M1 * c2, h0 ^ c3 ^ k1, _M0 * c0
            k0, k1 = k0 + _W0, k1 + _W1
        place = _WORDS * block
        words[place], words[place + 1], words[place + 2], words[place + 3] = c0, c1, c2, c3


@kernel()
def keep_values(x, stream, keeps, out):
    """out[k] = x[k] · (scale where byte k of the stream is at least the threshold, else 0)

    keeps   (threshold, scale, 0), the numbers of x's type
    """
    limit, kept, lost = keeps
    for k in range(len(x)):
        out[k] = (kept if stream[k] >= limit else lost) * x[k]

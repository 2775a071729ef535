# mypy: allow-untyped-defs, allow-untyped-calls
"""bfloat16: the upper half of a float32, with 8 bits of precision and all of its range. NumPy has no such type, so its
bits lie in uint16; kernels read them as float32.
"""

import numpy as np

from common.saga.arrays import Array
from graph_server.graph.compiling import kernel

_INFINITY = np.uint32(0x7F800000)
_MAGNITUDE = np.uint32(0x7FFFFFFF)
_QUIET = np.uint32(0x40)


def to_bfloat16(rows: Array) -> Array:
    """float32 of any shape -> uint16 of the same, rounded to the nearest, ties to even. NaN stays NaN."""
    bits = np.ascontiguousarray(rows, np.float32).view(np.uint32)
    rounded = np.empty(rows.shape, np.uint16)
    _round(bits.reshape(-1), rounded.reshape(-1))
    return rounded


def from_bfloat16(bits: Array) -> Array:
    """The same numbers as float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


@kernel()
def _round(bits, rounded):
    for n in range(len(bits)):
        number = bits[n]
        up = (number + np.uint32(0x7FFF) + ((number >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
        nan = (number >> np.uint32(16)) | _QUIET
        rounded[n] = np.uint16(nan if (number & _MAGNITUDE) > _INFINITY else up)

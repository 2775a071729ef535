"""Arrays that begin at a cache line. NumPy's large ones begin 16 bytes after one: a row of 64 bytes lies in two."""

from typing import Any

import numpy as np
import numpy.typing as npt

CACHE_LINE = 64


def zeros(shape: tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
    """Pages that nobody writes to take no memory, as those of `numpy.zeros`."""
    wanted = np.dtype(dtype)
    num_bytes = int(np.prod(shape)) * wanted.itemsize
    raw = np.zeros(num_bytes + CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + num_bytes].view(wanted).reshape(shape)

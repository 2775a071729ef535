"""One hash for a set of weights, of what they are and never of a file that holds them."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def weights_sha256(weights: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256, hex, over the tensors in ascending order of their names (by code point). Each tensor adds

    name in UTF-8 · 0x00 · dtype as NumPy names it ("float32") in ASCII · 0x00 · its sizes in decimal ASCII, joined by
    commas ("1433,16"; nothing for a scalar) · 0x00 · its values in row-major order, little-endian, nothing in between.
    """
    digest = hashlib.sha256()
    for name in sorted(weights):
        array = weights[name]
        sizes = ",".join(map(str, array.shape))
        digest.update(f"{name}\0{array.dtype.name}\0{sizes}\0".encode())
        digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()

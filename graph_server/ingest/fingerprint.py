"""One hash over everything a dataset is: two datasets with the same fingerprint train alike."""

import hashlib
from collections.abc import Mapping

import numpy as np

from graph_server.ingest.raw_graph import Array

VERSION = 1
"""Raised when the same files would be read differently; old caches then no longer match."""


def fingerprint(arrays: Mapping[str, Array], facts: Mapping[str, object]) -> str:
    """SHA-256 hex over names, dtypes, shapes and little-endian bytes, and the text of the facts, in sorted order."""
    digest = hashlib.sha256(f"dorylus dataset {VERSION}\n".encode())
    for name in sorted(facts):
        digest.update(f"{name}={facts[name]!r}\n".encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data.cast("B") if array.dtype.kind != "U" else array.tobytes())
    return digest.hexdigest()

"""Sparse matrices out of files that may lie about them: checked once, and never made dense without a look at memory."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from graph_server.ingest.memory import available_memory_bytes
from graph_server.ingest.raw_graph import Array, damaged


def csr_of(data: Array, indices: Array, indptr: Array, shape: Any) -> scipy.sparse.csr_matrix:
    """As stored: order, duplicates and explicit zeros are kept.

    Raises ValueError, TypeError, OverflowError or IndexError for pieces that do not fit together.
    """
    if data.dtype.kind not in "biuf":
        raise TypeError(f"entries have dtype {data.dtype}")
    matrix = scipy.sparse.csr_matrix((data, indices, indptr), shape=tuple(int(size) for size in shape))
    matrix.check_format(full_check=True)
    # SciPy looks no further when the last entry says that nothing is stored.
    if (np.diff(matrix.indptr) < 0).any():
        raise ValueError("indptr is not in order")
    return matrix


def as_dense(matrix: scipy.sparse.csr_matrix, what: str, path: Path) -> Array:
    """Raises DatasetError where there is no room."""
    needed, free = int(np.prod(matrix.shape, dtype=object)) * matrix.dtype.itemsize, available_memory_bytes()
    if needed > free:
        raise damaged(path, f"{what} of {matrix.shape[0]} x {matrix.shape[1]} need {needed:,} bytes; {free:,} are free")
    return np.asarray(matrix.toarray())

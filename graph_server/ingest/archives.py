"""Reads `.npy` and `.npz` without pickle: object arrays are never loaded.

Promises a DatasetError, never a NumPy or zip traceback, for anything that is damaged.
"""

import gzip
import io
import zipfile
import zlib
from pathlib import Path

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.raw_graph import Array, damaged

_DAMAGE = (ValueError, OSError, EOFError, zlib.error, zipfile.BadZipFile, MemoryError, SyntaxError, TypeError)


def member_names(path: Path) -> frozenset[str]:
    """The arrays an `.npz` holds; empty when the file is no zip archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return frozenset(name.removesuffix(".npy") for name in archive.namelist())
    except _DAMAGE:
        return frozenset()


def load_npz(path: Path) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Every array that is no object array, and the names of those that are."""
    arrays, skipped = {}, []
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                try:
                    arrays[name] = archive[name]
                except ValueError as error:
                    if "Object arrays" not in str(error):
                        raise
                    skipped.append(name)
    except _DAMAGE as error:
        raise damaged(path, error) from error
    return arrays, tuple(skipped)


def load_npy(path: Path) -> Array:
    """One array; a `.gz` around it is opened. Object arrays are refused."""
    try:
        data = path.read_bytes()
        array = np.load(io.BytesIO(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data), allow_pickle=False)
    except _DAMAGE as error:
        if "Object arrays" in str(error) or "allow_pickle" in str(error):
            raise DatasetError(
                what=f"{path} holds Python objects, not numbers",
                why="loading them means unpickling, which could run any code",
                fix="save it as a plain array: numpy.save(file, array.astype(float))",
            ) from error
        raise damaged(path, error) from error
    if not isinstance(array, np.ndarray):
        raise damaged(path, "it is an archive, not one array")
    return array

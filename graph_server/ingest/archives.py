"""Reads `.npy` and `.npz`: object arrays are not loaded, or by opt-in through the restricted unpickler.

Promises a DatasetError, never a NumPy or zip traceback, for anything that is damaged.
"""

import io
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import DatasetError
from graph_server.ingest.memory import available_memory_bytes
from graph_server.ingest.raw_graph import Array, damaged
from graph_server.ingest.restricted_unpickler import unpickle_items
from graph_server.ingest.streams import read_unpacked

_NO_ARCHIVE = (ValueError, OSError, EOFError, zipfile.BadZipFile, NotImplementedError)


def member_names(path: Path) -> frozenset[str]:
    """The arrays an `.npz` holds; empty when the file is no zip archive."""
    return frozenset(name.removesuffix(".npy") for name in file_names(path))


def file_names(path: Path) -> list[str]:
    """The files in a zip archive; none when it is damaged, or is no archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except _NO_ARCHIVE:
        return []


def load_npz(
    path: Path, only: Collection[str] | None = None, *, allow_pickle: bool = False
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Every array of numbers or texts, and the names of those that hold objects; `only` leaves the others unread.

    allow_pickle   also arrays of objects that are all texts, or all numbers, through the restricted unpickler
    """
    arrays, skipped = {}, []
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            for name in archive.files if only is None else [name for name in archive.files if name in only]:
                try:
                    arrays[name] = archive[name]
                except ValueError as error:
                    if "Object arrays" not in str(error):
                        raise
                    skipped.append(name)
                    continue
                _refuse_hollow(arrays[name], name)
    except Exception as error:  # NumPy reads headers as Python source: a damaged one may fail in any way
        raise damaged(path, error) from error
    if allow_pickle:
        arrays |= _plain_arrays(load_objects(path, skipped))
    return arrays, tuple(name for name in skipped if name not in arrays)


def _refuse_hollow(array: object, name: str) -> None:
    """NumPy hands out the bytes of what is no array; and a header may announce rows that take no bytes."""
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{name} is no array")
    if array.ndim and len(array) and not array.nbytes:
        raise ValueError(f"{name} announces {len(array)} rows of no bytes: {array.dtype} of shape {array.shape}")


def load_objects(path: Path, names: Collection[str]) -> dict[str, Any]:
    """Arrays of objects, through the restricted unpickler: a list of what each holds, or the one thing it holds."""
    objects = {}
    for name in names:
        shape, pickled = _pickled_member(path, name)
        items = unpickle_items(pickled, path)
        objects[name] = items[0] if shape == () and items else items
    return objects


def _pickled_member(path: Path, name: str) -> tuple[tuple[int, ...], bytes]:
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(f"{name}.npy").file_size > available_memory_bytes():
                raise damaged(path, f"{name} unpacks to more than the memory that is free")
            member = io.BytesIO(archive.read(f"{name}.npy"))
        version = np.lib.format.read_magic(member)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = read_header(member)
        if not kind.hasobject:
            raise ValueError(f"{name} holds no objects")
        return shape, member.read()
    except DatasetError:
        raise
    except Exception as error:  # as above
        raise damaged(path, error) from error


def _plain_arrays(objects: dict[str, Any]) -> dict[str, Array]:
    """Those that are lists of texts, or of numbers."""
    plain = {}
    for name, values in objects.items():
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            plain[name] = np.array(values, dtype=np.str_)
        elif isinstance(values, list) and all(
            isinstance(value, int | float) and abs(value) < 2**63 for value in values
        ):
            plain[name] = np.array(values)
    return plain


def load_npy(path: Path, *, mapped: bool = False) -> Array:
    """One array; what packs it is opened. Object arrays are refused. mapped: it stays on disk, unless it is packed."""
    try:
        with path.open("rb") as file:
            is_packed = file.read(6) != b"\x93NUMPY"
        if mapped and not is_packed:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            with io.BytesIO(read_unpacked(path)) if is_packed else path.open("rb") as stream:
                array = np.load(stream, allow_pickle=False)
        if isinstance(array, np.ndarray):
            _refuse_hollow(array, "it")
    except DatasetError:
        raise
    except Exception as error:  # NumPy reads the header as Python source: a damaged one may fail in any way
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

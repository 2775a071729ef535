"""Reads arrays, sparse matrices, dicts and lists out of a pickle without ever running what the pickle names.

A pickle is a program: it may import and call anything. Here every name it may use stands in one table, and what the
table holds are inert records of this module; NumPy and SciPy never see the pickle's arguments, only bytes whose
dtype and size were checked. A name outside the table is refused before anything is called.

Old pickles name modules that have moved (`numpy.core`, `scipy.sparse.csr`); the table maps old and new names alike.
"""

import contextlib
import io
import math
import pickle
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from common.errors import DatasetError
from graph_server.ingest.raw_graph import Array, damaged
from graph_server.ingest.sparse import csr_of


class _Dtype:
    """A dtype's code and byte order."""

    def __init__(self, code: object, *_: object) -> None:
        self.code, self.order = str(code), "<"

    def __setstate__(self, state: Any) -> None:
        self.order = str(state[1])

    def resolve(self) -> np.dtype[Any]:
        if self.code[:1] not in "bif" or not self.code[1:].isdigit() or self.order not in "<>=|":
            raise ValueError(f"dtype {self.order}{self.code} is not a plain number")
        return np.dtype(self.code).newbyteorder(self.order)  # type: ignore[arg-type]


class _Latin1:
    """Bytes that Python 3 wrote as text, for Python 2 to read: `_codecs.encode(text, "latin1")`."""

    def __init__(self, text: str, codec: str) -> None:
        if codec != "latin1":
            raise ValueError(f"codec {codec!r}")
        self.text = text

    def __setstate__(self, state: object) -> None: ...


class _Array:
    """An array's shape, dtype and bytes."""

    def __init__(self, *_: object) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: Any) -> None:
        self.state = tuple(state)

    def items(self) -> list[Any]:
        """What an array of objects holds, or the numbers of an array of numbers."""
        _, shape, dtype, _, raw = self.state
        if not dtype.code.startswith("O"):
            return self.resolve().reshape(-1).tolist()
        if not isinstance(raw, list) or math.prod(shape) != len(raw):
            raise ValueError(f"an array of objects of shape {shape} comes without them")
        return [item.resolve() if isinstance(item, _Array | _Csr) else item for item in raw]

    def resolve(self) -> Array:
        _, shape, dtype, fortran, raw = self.state
        kind = dtype.resolve()
        raw = raw.text if isinstance(raw, _Latin1) else raw
        data = raw.encode("latin1") if isinstance(raw, str) else bytes(raw)
        if not all(isinstance(size, int) and size >= 0 for size in shape) or math.prod(shape) * kind.itemsize != len(
            data
        ):
            raise ValueError(f"an array of shape {shape} and dtype {kind} comes with {len(data)} bytes")
        return np.frombuffer(data, kind).reshape(shape, order="F" if fortran else "C").copy()


class _Csr:
    """A sparse matrix's attributes."""

    def __init__(self, *_: object) -> None:
        self.state: Mapping[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        self.state = dict(state)

    def resolve(self) -> scipy.sparse.csr_matrix:
        data, indices, indptr = (self.state[name].resolve() for name in ("data", "indices", "indptr"))
        shape = self.state.get("_shape", self.state.get("shape"))
        return csr_of(data, indices, indptr, shape)


class _Name:
    """Stands for a class that is only passed as an argument."""

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, state: object) -> None: ...


ALLOWED: Mapping[tuple[str, str], type] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Name,
    ("numpy", "dtype"): _Dtype,
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("scipy.sparse._csr", "csr_matrix"): _Csr,
    ("_codecs", "encode"): _Latin1,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _RestrictedUnpickler(pickle.Unpickler):
    def __init__(self, data: bytes, path: Path) -> None:
        super().__init__(io.BytesIO(data), encoding="latin1")
        self._path = path

    def find_class(self, module: str, name: str) -> type:
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise DatasetError(
                what=f"{self._path}: the pickle names {module}.{name}, which is refused",
                why="unpickling it could run any code; only arrays, sparse matrices, dicts and lists are read",
                fix="get the dataset from its original source, or convert it to .npz, .npy or text yourself",
            ) from None


def load_pickle(path: Path) -> Any:
    """An array, a csr_matrix, or a plain dict or list; nothing the pickle names is run.

    Raises DatasetError for any other name in the pickle and for a damaged file.
    """
    with _damage_of(path):
        loaded = _RestrictedUnpickler(path.read_bytes(), path).load()
        if isinstance(loaded, _Array | _Csr):
            return loaded.resolve()
        if isinstance(loaded, dict | list):
            return loaded
        raise TypeError(f"a {type(loaded).__name__} instead of an array, a matrix, a dict or a list")


def unpickle_items(data: bytes, path: Path) -> list[Any]:
    """What an array of objects in the file `path` holds: arrays, matrices, dicts, lists, texts and numbers."""
    with _damage_of(path):
        loaded = _RestrictedUnpickler(data, path).load()
        if isinstance(loaded, _Array):
            return loaded.items()
        raise TypeError(f"a {type(loaded).__name__} instead of an array of objects")


@contextlib.contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    try:
        yield
    except DatasetError:
        raise
    except Exception as error:  # a damaged pickle may fail in any way; none of it is our state
        raise damaged(path, f"{type(error).__name__}: {error}") from error

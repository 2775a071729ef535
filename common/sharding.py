"""Each parameter is split by rows over the parameter servers: who holds which rows.

A shard's rows are contiguous and shard sizes differ by at most one; with more shards than rows some are empty, which is
legal. A function of three numbers, so clients and parameter servers agree without asking each other.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from common.errors import ModelError

Array = npt.NDArray[Any]


def shard_rows(num_rows: int, num_shards: int, shard: int) -> slice:
    """The rows of shard number `shard`; over all shards the slices are 0..num_rows, in order, without gap or overlap.

    Raises ValueError for a shard that is not there.
    """
    if num_rows < 0 or not 0 <= shard < num_shards:
        raise ValueError(f"shard {shard} of {num_shards} over {num_rows} rows: need 0 <= shard < num_shards, rows >= 0")
    return slice(num_rows * shard // num_shards, num_rows * (shard + 1) // num_shards)


def shard(weights: Mapping[str, Array], num_shards: int, shard: int) -> dict[str, Array]:
    """The rows of every array that shard number `shard` holds: views, also of gradients.

    Raises ModelError for an array without rows to split (shape ()).
    """
    return {name: array[shard_rows(_num_rows(name, array), num_shards, shard)] for name, array in weights.items()}


def join(shards: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """The whole arrays again, new ones; `shards` in order, all with the same names.

    Raises ValueError if there is no shard or the names differ.
    """
    if not shards:
        raise ValueError("no shard to join")
    for number, part in enumerate(shards):
        if part.keys() != shards[0].keys():
            raise ValueError(f"shard {number} holds {sorted(part)}, shard 0 holds {sorted(shards[0])}")
    return {name: np.concatenate([part[name] for part in shards]) for name in shards[0]}


def _num_rows(name: str, array: Array) -> int:
    if array.ndim == 0:
        raise ModelError(
            what=f"parameter {name} has shape ()",
            why="parameters are split by rows over the parameter servers, and a scalar has none",
            fix="declare it with shape (1,)",
        )
    return int(array.shape[0])

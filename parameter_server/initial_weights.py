"""The first weights: Glorot uniform or zeros, the same bits everywhere.

Each parameter has its own raw Philox stream, keyed by the seed and its name: it depends on no other parameter and on no
sharding, and NumPy guarantees the bits of `random_raw` for ever (not those of its distributions).
Source: Glorot & Bengio 2010, eq. 16: uniform in ±sqrt(6 / (fan_in + fan_out)).
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from common.errors import ModelError

Array = npt.NDArray[Any]
INITS = ("glorot", "zeros")


class Declared(Protocol):
    """What a model declares of a parameter; `fan` is (fan_in, fan_out)."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def init(self) -> str: ...
    @property
    def fan(self) -> tuple[int, int]: ...


def initial_weights(parameters: Sequence[Declared], seed: int, dtype: npt.DTypeLike) -> dict[str, Array]:
    """Weights version 0, in the order declared.

    Raises ModelError for an unknown init, for a Glorot init without fans and for a name declared twice.
    """
    weights: dict[str, Array] = {}
    for parameter in parameters:
        if parameter.name in weights:
            raise ModelError(
                what=f"two parameters are called {parameter.name}",
                why="weights, gradients and their random streams are told apart by name",
                fix="give one of them another name",
            )
        weights[parameter.name] = _initial(parameter, seed).astype(dtype)
    return weights


def _initial(parameter: Declared, seed: int) -> Array:
    match parameter.init:
        case "zeros":
            return np.zeros(parameter.shape)
        case "glorot":
            limit = _glorot_limit(parameter)
            return (2.0 * _uniform(parameter.shape, seed, parameter.name) - 1.0) * limit
    raise ModelError(
        what=f"init = '{parameter.init}' of parameter {parameter.name}",
        why=f"there is no such init; there are {', '.join(INITS)}",
        fix="set init to one of these",
    )


def _glorot_limit(parameter: Declared) -> float:
    if min(parameter.fan) < 0 or sum(parameter.fan) < 1:
        raise ModelError(
            what=f"fan = {parameter.fan} of parameter {parameter.name}",
            why="Glorot divides by fan_in + fan_out",
            fix="declare how many inputs and outputs the parameter joins",
        )
    return math.sqrt(6.0 / sum(parameter.fan))


def _uniform(shape: tuple[int, ...], seed: int, name: str) -> Array:
    """float64 in [0, 1): the high 53 bits of each raw word; row-major."""
    message = seed.to_bytes(8, "little", signed=True) + name.encode()
    key = int.from_bytes(hashlib.blake2b(message, digest_size=16).digest(), "little")
    raw = np.random.Philox(key=key).random_raw(math.prod(shape))
    return ((raw >> np.uint64(11)) * 2.0**-53).reshape(shape)

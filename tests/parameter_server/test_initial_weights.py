"""Initial weights: golden bits, bounds, independence."""

import math
from typing import NamedTuple

import numpy as np
import pytest

from common.errors import ModelError
from common.sharding import shard
from parameter_server.initial_weights import initial_weights


class Declared(NamedTuple):
    name: str
    shape: tuple[int, ...]
    init: str = "glorot"
    fan: tuple[int, int] = (1, 1)


W = Declared("0.W", (40, 8), "glorot", (40, 8))
A = Declared("0.a", (2, 3), "glorot", (3, 1))
B = Declared("0.b", (8,), "zeros", (0, 0))


GOLDEN = ["0x1.9c077229f0781p-1", "0x1.4c418dccd6f39p+0", "0x1.8b04abc4e528dp-1", "0x1.11a65eb67adbbp-1"]


def test_golden_bits():
    weights = initial_weights([Declared("W", (2, 2), "glorot", (2, 1))], 7, np.float64)
    assert [value.hex() for value in weights["W"].ravel().tolist()] == GOLDEN


def test_float32_is_the_float64_value_rounded_once():
    exact, rounded = (initial_weights([W], 1, dtype)["0.W"] for dtype in (np.float64, np.float32))
    assert rounded.dtype == np.float32
    assert rounded.tobytes() == exact.astype(np.float32).tobytes()


def test_glorot_fills_its_range():
    weights = initial_weights([Declared("W", (500, 100), "glorot", (500, 100))], 0, np.float64)["W"]
    limit = math.sqrt(6 / 600)
    assert np.abs(weights).max() <= limit
    assert weights.min() < -0.999 * limit
    assert weights.max() > 0.999 * limit
    assert abs(weights.mean()) < 0.01 * limit
    assert weights.std() == pytest.approx(limit / math.sqrt(3), rel=0.01)


def test_zeros():
    assert initial_weights([B], 0, np.float32)["0.b"].tobytes() == np.zeros(8, np.float32).tobytes()


def test_a_parameter_depends_on_no_other():
    together, alone = initial_weights([A, B, W], 5, np.float32), initial_weights([W], 5, np.float32)
    assert list(together) == ["0.a", "0.b", "0.W"]
    assert together["0.W"].tobytes() == alone["0.W"].tobytes()


def test_seed_and_name_tell_streams_apart():
    one, other = Declared("one", (50,)), Declared("other", (50,))
    streams = [initial_weights([p], seed, np.float64)[p.name] for p in (one, other) for seed in (-1, 0, 1, 256)]
    values = np.concatenate(streams)
    assert len(set(values.tolist())) == len(values)


def test_shards_are_rows_of_the_whole():
    weights = initial_weights([W, A], 0, np.float32)
    np.testing.assert_array_equal(shard(weights, 3, 1)["0.W"], weights["0.W"][13:26])


def test_no_rows_are_fine():
    assert initial_weights([Declared("W", (0, 4), "glorot", (0, 4))], 0, np.float32)["W"].shape == (0, 4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            [Declared("W", (2,), "normal")],
            "init = 'normal' of parameter W\n  why: there is no such init; there are glorot, zeros\n"
            "  fix: set init to one of these",
        ),
        (
            [Declared("W", (2,), "glorot", (0, 0))],
            "fan = (0, 0) of parameter W\n  why: Glorot divides by fan_in + fan_out\n"
            "  fix: declare how many inputs and outputs the parameter joins",
        ),
        (
            [B, B],
            "two parameters are called 0.b\n  why: weights, gradients and their random streams are told apart by name\n"
            "  fix: give one of them another name",
        ),
    ],
)
def test_a_wrong_declaration(parameters, message):
    with pytest.raises(ModelError) as caught:
        initial_weights(parameters, 0, np.float32)
    assert str(caught.value) == message

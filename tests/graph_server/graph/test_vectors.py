"""Vectors: what each function does, lane by lane, for every way in which a width is cut into pieces."""

import numpy as np
import pytest
from numba import njit, types

from graph_server.graph import vectors as v
from graph_server.graph.bfloat16 import from_bfloat16, to_bfloat16
from graph_server.graph.vectors import Vector

WIDTHS = [1, 3, 8, 13, 16, 41, 64]
SHAPES = [(1, 1), (2, 3), (8, 8), (3, 5), (7, 2), (1, 41), (8, 16)]
NUMBERS = [np.float32, np.float64]


def numbers(width: int, dtype, seed: int = 0) -> np.ndarray:
    """Of very different size, and some below 0."""
    random = np.random.default_rng(seed)
    return (random.normal(size=width) * 10.0 ** random.integers(-3, 4, width)).astype(dtype)


def same_bits(found: np.ndarray, expected: np.ndarray) -> bool:
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


# ---- pieces


@pytest.mark.parametrize("number", [types.float32, types.float64])
def test_the_pieces_cover_the_width_and_nothing_else(number):
    for width in [*range(1, 300), 602, 2048]:
        vector = Vector(number, width)
        assert {lane for start in vector.starts for lane in range(start, start + vector.lanes)} == set(range(width))
        assert len(vector.starts) == -(-width // vector.lanes)
        assert vector.lanes * number.bitwidth <= 8 * v.PIECE_BYTES
        for lane in range(width):
            piece, place = vector.place(lane)
            assert vector.starts[piece] + place == lane
            assert 0 <= place < vector.lanes


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_store_writes_its_lanes_only(width, dtype):
    @njit
    def copy(source, target):
        v.store(target, 2, v.load(source, 1, width))

    source, target = numbers(width + 1, dtype), np.full(width + 4, np.nan, dtype)
    copy(source, target)
    assert same_bits(target[2:-2], source[1:])
    assert np.isnan(target[[0, 1, -2, -1]]).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_bfloat16_is_loaded_as_float32(width):
    @njit
    def widen(source, target):
        v.store(target, 0, v.load(source, 1, width) + v.zeros(source, width))

    source, target = to_bfloat16(numbers(width + 1, np.float32)), np.empty(width, np.float32)
    widen(source, target)
    assert same_bits(target, from_bfloat16(source[1:]))


def test_at_and_prefetch():
    @njit
    def look(array, position):
        v.prefetch(array, 1_000_000_007, 40)
        v.prefetch(array, -1_000_000_007, 3)
        return v.at(array, position)

    assert [look(np.array([5, -7], dtype), 1) for dtype in (np.int32, np.int64)] == [-7, -7]


# ---- lane by lane


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("width", WIDTHS)
def test_arithmetic_is_that_of_numpy(width, dtype):
    @njit
    def compute(a, b, number, target):
        x, y = v.load(a, 0, width), v.load(b, 0, width)
        z = x
        z += y
        results = (
            x + y, x - y, x * y, x / y, z, x * number, number - x, 1 / x, v.fill(number, width),
            v.maximum(x, y), v.minimum(x, y), v.maximum(x, number), v.where_positive(x, y, x), x * y + x,
        )  # fmt: skip
        for n, result in enumerate(results):
            v.store(target, n * width, result)

    x, y, number = numbers(width, dtype), numbers(width, dtype, seed=1), dtype(0.3)
    expected = [
        x + y, x - y, x * y, x / y, x + y, x * number, number - x, 1 / x, np.full(width, number),
        np.maximum(x, y), np.minimum(x, y), np.maximum(x, number), np.where(x > 0, y, x), (x * y).astype(dtype) + x,
    ]  # fmt: skip
    target = np.empty((len(expected), width), dtype)
    compute(x, y, number, target)
    for found, exact in zip(target, expected, strict=True):
        assert same_bits(found, exact)


def test_a_fused_multiply_add_would_be_seen():
    """The test above can fail: rounded once, half of these sums have other bits."""
    x, y = numbers(1000, np.float32), numbers(1000, np.float32, seed=1)
    fused = (x.astype(np.float64) * y + x).astype(np.float32)
    assert (fused != x * y + x).mean() > 0.05


def test_parts_of_a_float32():
    @njit
    def parts(source, target):
        x = v.load(source, 0, 24)
        v.store(target, 0, v.fraction(x))
        v.store(target, 24, v.exponent(x))
        v.store(target, 48, v.two_to(v.exponent(x)))
        for k in range(24):
            target[3, k] = v.fraction(source[k]) * v.two_to(v.exponent(source[k]))

    x = np.abs(numbers(24, np.float32))
    x[:6] = [np.finfo(np.float32).tiny, 1, 0.5, np.nextafter(np.float32(1), np.float32(0)), 2.0**126, 3]
    target = np.empty((4, 24), np.float32)
    parts(x, target)
    fraction, exponent = np.frexp(x)
    assert same_bits(target[0], fraction)
    assert same_bits(target[1], exponent.astype(np.float32))
    assert same_bits(target[2], np.ldexp(np.float32(1), exponent))
    assert same_bits(target[3], x)
    assert [v.fraction(x[5]), v.exponent(x[5]), v.two_to(-3)] == [0.75, 2, 0.125]


# ---- between lanes


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_spread_and_add_columns(shape, dtype):
    heads, d = shape
    lanes = heads * d

    @njit
    def compute(weights, rows, spread, sums):
        w = v.load(weights, 0, heads)
        v.store(spread, 0, v.spread(w, d))
        v.store(sums, 0, v.add_columns(w, v.load(rows, 0, lanes)))

    weights, rows = numbers(heads, dtype), numbers(lanes, dtype, seed=1)
    spread, sums, expected = np.empty(lanes, dtype), np.empty(heads, dtype), weights.copy()
    compute(weights, rows, spread, sums)
    assert same_bits(spread, np.repeat(weights, d))
    for column in rows.reshape(heads, d).T:
        expected = expected + column
    assert same_bits(sums, expected)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("width", range(1, 9))
def test_where_byte(width, dtype):
    @njit
    def compute(word, limit, number, target):
        v.store(target, 0, v.where_byte(word, limit, number, width))

    bytes_, target = np.array([0, 255, 128, 127, 1, 200, 129, 254], np.uint8), np.empty(width, dtype)
    for limit in (1, 128, 255):
        compute(bytes_.view(np.uint64)[0], limit, dtype(1.5), target)
        assert target.tolist() == [1.5 if byte >= limit else 0 for byte in bytes_[:width]]

"""bfloat16: rounded to the nearest, ties to even, whatever the number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_server.graph.bfloat16 import from_bfloat16, to_bfloat16

MAGNITUDES = st.floats(0, float(np.float32(3e38)), width=32)


def rounded(*numbers: float) -> list[float]:
    return from_bfloat16(to_bfloat16(np.array(numbers, np.float32))).tolist()


@given(st.integers(0, 2**16 - 1))
def test_what_is_bfloat16_stays(bits: int):
    number = from_bfloat16(np.array([bits], np.uint16))
    again = to_bfloat16(number)
    assert again[0] == bits or (np.isnan(number[0]) and np.isnan(from_bfloat16(again)[0]))


@given(MAGNITUDES)
def test_no_neighbour_is_nearer(number: float):
    bits = int(to_bfloat16(np.array([number], np.float32))[0])
    below, found, above = from_bfloat16(np.array([max(bits - 1, 0), bits, bits + 1], np.uint16)).astype(np.float64)
    assert abs(found - number) <= min(abs(below - number), abs(above - number))
    assert rounded(-number) == [-found]


def test_ties_go_to_even():
    assert rounded(1 + 2**-8, 1 + 3 * 2**-8) == [1.0, 1 + 2**-6]


def test_what_is_no_number_stays_none():
    worst = np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001], np.uint32).view(np.float32)
    assert np.isnan(from_bfloat16(to_bfloat16(worst))).all()
    assert rounded(np.inf, -np.inf, 3.4e38) == [np.inf, -np.inf, np.inf]
    assert np.signbit(rounded(-0.0))


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (7, 13)])
def test_any_shape_and_any_stride(shape: tuple[int, int]):
    rows = np.random.default_rng(0).normal(size=(shape[0], 2 * shape[1])).astype(np.float32)
    assert to_bfloat16(rows[:, ::2]).tolist() == to_bfloat16(rows[:, ::2].copy()).tolist()
    assert to_bfloat16(rows[:, ::2]).shape == shape

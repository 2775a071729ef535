"""exp and log, bit by bit: golden vectors, and the same numbers in Python, in a kernel, and as lanes of a vector."""

import numpy as np
import pytest
from numba import njit

from graph_server.graph import vectors
from graph_server.graph.exponential import exp, log

EXP = {
    0.0: "3f800000", -1.0: "3ebc5ab2", 1.0: "402df854", -0.5: "3f1b4598", -10.25: "38144cd4", 20.5: "4e3eb628",
    -86.9: "00c60f89", 87.9: "7ee0dcae", -87.0: "00b33687", -1e30: "00b33687", 200.0: "7ef882b7", 1e-6: "3f800008",
}  # fmt: skip
LOG = {
    1.0: "00000000", 2.0: "3f317218", 0.5: "bf317218", 1e-30: "c28a27b5", 1e4: "41135d8e", 3.25: "3f96de2b",
    0.70710677: "beb17218", 0.70710683: "beb17216", 1.1754944e-38: "c2aeac50",
}  # fmt: skip


@njit
def compiled_exp(xs, out):
    for i in range(len(xs)):
        out[i] = exp(xs[i])


@njit
def compiled_log(xs, out):
    for i in range(len(xs)):
        out[i] = log(xs[i])


def by(function, xs: np.ndarray) -> np.ndarray:
    out = np.empty_like(xs)
    function(xs, out)
    return out


@pytest.mark.parametrize(("function", "compiled", "golden"), [(exp, compiled_exp, EXP), (log, compiled_log, LOG)])
def test_golden_bits(function, compiled, golden):
    xs = np.array(list(golden), np.float32)
    expected = [int(bits, 16) for bits in golden.values()]
    assert np.array([function(x) for x in xs]).view(np.uint32).tolist() == expected
    assert by(compiled, xs).view(np.uint32).tolist() == expected


EXP_RANGE = np.linspace(-87, 88, 50_001).astype(np.float32)
LOG_RANGE = np.concatenate([np.exp(np.linspace(-87, 88, 50_001)), np.linspace(0.5, 2, 50_001)]).astype(np.float32)


@pytest.mark.parametrize(
    ("function", "compiled", "xs"), [(exp, compiled_exp, EXP_RANGE), (log, compiled_log, LOG_RANGE)]
)
def test_python_and_compiled_give_the_same_bits(function, compiled, xs):
    some = xs[:: len(xs) // 5000]
    plain = np.array([function(x) for x in some])
    assert plain.dtype == np.float32
    assert np.array_equal(plain.view(np.uint32), by(compiled, some).view(np.uint32))


def test_exp_is_right_within_a_unit_in_the_last_place():
    exact = np.exp(EXP_RANGE.astype(np.float64))
    assert (np.abs(by(compiled_exp, EXP_RANGE) / exact - 1) < 1.5 * 2.0**-24).all()
    assert (np.diff(by(compiled_exp, EXP_RANGE)) >= 0).all()


def test_log_is_right_within_a_unit_in_the_last_place():
    exact = np.log(LOG_RANGE.astype(np.float64))
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    assert (np.abs(by(compiled_log, LOG_RANGE) - exact) < unit).all()


@pytest.mark.parametrize("compiled", [compiled_exp, compiled_log])
def test_float64_goes_to_the_c_library(compiled):
    xs = np.linspace(0.1, 5, 100)
    assert np.allclose(by(compiled, xs), (np.exp if compiled is compiled_exp else np.log)(xs), rtol=1e-15)


WIDTH = 13


@njit
def lanes_of_exp(xs, out):
    for i in range(0, len(xs) - WIDTH + 1, WIDTH):
        vectors.store(out, i, exp(vectors.load(xs, i, WIDTH)))


@njit
def lanes_of_log(xs, out):
    for i in range(0, len(xs) - WIDTH + 1, WIDTH):
        vectors.store(out, i, log(vectors.load(xs, i, WIDTH)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("lanes", "compiled", "xs"), [(lanes_of_exp, compiled_exp, EXP_RANGE), (lanes_of_log, compiled_log, LOG_RANGE)]
)
def test_lanes_of_a_vector_have_the_bits_of_numbers(lanes, compiled, xs, dtype):
    whole = xs[: len(xs) // WIDTH * WIDTH].astype(dtype)
    assert by(lanes, whole).tobytes() == by(compiled, whole).tobytes()

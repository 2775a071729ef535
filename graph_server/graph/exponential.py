# mypy: allow-untyped-defs, allow-untyped-calls
"""exp and log of attention: one formula each for every path, for numbers and for vectors, in kernels and outside.

Polynomials in float32, each step rounded to float32, so that the bits are the same on every processor; golden vectors
stand in the tests. Source: Cephes' expf and logf, by S. Moshier. float64, which only gradient checks pass, goes to the
C library.
"""

import numpy as np
from numba import types
from numba.extending import overload

from graph_server.graph.vectors import (
    Vector,
    exponent,
    fraction,
    library_exp,
    library_log,
    maximum,
    minimum,
    two_to,
    where_positive,
)  # fmt: skip

_LOG2E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LOWEST, _HIGHEST = np.float32(-87.0), np.float32(88.0)
_ROUND = np.float32(12582912.0)  # 1.5 · 2^23: adding and subtracting it rounds to the nearest integer
_ZERO, _HALF, _ONE, _SQRT_HALF = np.float32(0), np.float32(0.5), np.float32(1), np.float32(0.707106781)

_E0, _E1, _E2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_E3, _E4, _E5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_L0, _L1, _L2 = np.float32(7.0376836292e-2), np.float32(-1.1514610310e-1), np.float32(1.1676998740e-1)
_L3, _L4, _L5 = np.float32(-1.2420140846e-1), np.float32(1.4249322787e-1), np.float32(-1.6668057665e-1)
_L6, _L7, _L8 = np.float32(2.0000714765e-1), np.float32(-2.4999993993e-1), np.float32(3.3333331174e-1)


def exp(x):
    """e^x; a float32 below -87 gives e^-87, about 1e-38, above 88 e^88."""
    return _exp32(x) if isinstance(x, np.float32) else library_exp(x)


def log(x):
    """ln x of a normal positive x."""
    return _log32(x) if isinstance(x, np.float32) else library_log(x)


def _exp32(x):
    x = minimum(maximum(x, _LOWEST), _HIGHEST)
    n = (x * _LOG2E + _ROUND) - _ROUND
    r = x - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = r * _E0 + _E1
    p = p * r + _E2
    p = p * r + _E3
    p = p * r + _E4
    p = p * r + _E5
    p = p * (r * r) + r
    return (p + _ONE) * two_to(n)


def _log32(x):
    m, e = fraction(x), exponent(x)
    e = where_positive(_SQRT_HALF - m, e - _ONE, e)
    m = where_positive(_SQRT_HALF - m, m + m, m) - _ONE
    z = m * m
    p = m * _L0 + _L1
    p = p * m + _L2
    p = p * m + _L3
    p = p * m + _L4
    p = p * m + _L5
    p = p * m + _L6
    p = p * m + _L7
    p = p * m + _L8
    y = p * m * z
    y = y + e * _LN2_LOW
    y = y - z * _HALF
    return (m + y) + e * _LN2_HIGH


def _compiled(x, float32, library):
    return float32 if types.float32 in (x, x.dtype if isinstance(x, Vector) else None) else library


@overload(exp, jit_options={"forceinline": True})
def _compiled_exp(x):
    return _compiled(x, _exp32, lambda x: library_exp(x))


@overload(log, jit_options={"forceinline": True})
def _compiled_log(x):
    return _compiled(x, _log32, lambda x: library_log(x))

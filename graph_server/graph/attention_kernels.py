"""Edge softmax attention, fused: no per-edge buffer. Forward gathers [z | s] over in-edges, backward [g | g·out | t |
logsumexp] over out-edges; both walk the edges of a row in order and add one by one.

Per head, with e = leaky(s_u + t_v), m the attention dropout of the edge (0 or its scale) and l' the slope of leaky:
  forward    out_v = sum of a·m·z_u     q_v = sum of a·m·l'·z_u     q1_v = sum of a·l'     a = exp(e - logsumexp_v)
  backward   dz_u = sum of a·m·g_v      ds_u = z_u · (sum of a·m·l'·g_v) - sum of a·l'·(g·out)_v
             dt_v = g_v · q_v - (g·out)_v · q1_v
Self loops come last. exp and log are one function each for every path: this file holds them, for numba's cache only
notices edits in a kernel's own file. Constants bear the array's dtype: with a bare 0 or 1 numba widens float32 to
float64. Source: Velickovic et al. 2018; the sums q and q1 avoid a second walk.
"""

import math

import numpy as np
from numba import njit, types
from numba.extending import overload

_LOG2E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LOWEST, _HIGHEST = np.float32(-87.0), np.float32(88.0)
_ROUND = np.float32(12582912.0)  # 1.5 · 2^23: adding and subtracting it rounds to the nearest integer
_POWERS = np.ldexp(np.ones(255, np.float32), np.arange(-127, 128, dtype=np.int32))
_HALF, _ONE, _SQRT_HALF = np.float32(0.5), np.float32(1), np.float32(0.707106781)

_E0, _E1, _E2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_E3, _E4, _E5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_L0, _L1, _L2 = np.float32(7.0376836292e-2), np.float32(-1.1514610310e-1), np.float32(1.1676998740e-1)
_L3, _L4, _L5 = np.float32(-1.2420140846e-1), np.float32(1.4249322787e-1), np.float32(-1.6668057665e-1)
_L6, _L7, _L8 = np.float32(2.0000714765e-1), np.float32(-2.4999993993e-1), np.float32(3.3333331174e-1)

_GOLDEN, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _BYTE = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(255)


def exp(x):
    """e^x; a float32 below -87 gives e^-87, about 1e-38, above 88 e^88. Cephes' expf, each step rounded to float32.

    float64 arguments, which only gradient checks pass, go to the C library.
    """
    return _exp32(x) if isinstance(x, np.float32) else math.exp(x)


def log(x):
    """ln x of a normal positive x; Cephes' logf for float32."""
    return _log32(x) if isinstance(x, np.float32) else math.log(x)


def _exp32(x):
    x = min(max(x, _LOWEST), _HIGHEST)
    n = (x * _LOG2E + _ROUND) - _ROUND
    r = x - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = _E0 * r + _E1
    p = p * r + _E2
    p = p * r + _E3
    p = p * r + _E4
    p = p * r + _E5
    p = p * (r * r) + r
    return (p + _ONE) * _POWERS[np.int32(n) + 127]


def _log32(x):
    fraction, exponent = math.frexp(x)
    m, e = np.float32(fraction), np.float32(exponent)
    if m < _SQRT_HALF:
        e = e - _ONE
        m = m + m
    m = m - _ONE
    z = m * m
    p = _L0 * m + _L1
    p = p * m + _L2
    p = p * m + _L3
    p = p * m + _L4
    p = p * m + _L5
    p = p * m + _L6
    p = p * m + _L7
    p = p * m + _L8
    y = p * m * z
    y = y + e * _LN2_LOW
    y = y - _HALF * z
    return (m + y) + e * _LN2_HIGH


@overload(exp)
def _compiled_exp(x):
    return _exp32 if x == types.float32 else lambda x: math.exp(x)


@overload(log)
def _compiled_log(x):
    return _log32 if x == types.float32 else lambda x: math.log(x)


@njit(nogil=True, cache=True)
def splitmix64(x):
    """One step of Steele, Lea & Flood's generator from state x, modulo 2^64."""
    z = x + _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@njit(nogil=True, cache=True)
def keep(keys, threshold, source, target, head):
    """Whether attention dropout keeps this edge for this head: byte head mod 8 of the edge's word.

    keys [ceil(heads / 8)] uint64; source and target are relabelled ids.
    """
    word = splitmix64(splitmix64(keys[head // 8] + np.uint64(source)) + np.uint64(target))
    return (word >> np.uint64(8 * (head % 8))) & _BYTE >= np.uint64(threshold)


@njit(nogil=True, cache=True)
def _forward_edge(row, t, top, kept, slope, shape, out, saved, total):
    """Add one in-edge to the sums of its target; kept [heads]: the edge's dropout factors."""
    heads, d = shape
    hd = heads * d
    for h in range(heads):
        x = row[hd + h] + t[h]
        a = exp((x if x > 0 else x * slope) - top[h])
        p = a if x > 0 else a * slope
        total[h] += a
        saved[hd + h] += p
        am, pm = a * kept[h], p * kept[h]
        for k in range(h * d, h * d + d):
            out[k] += am * row[k]
            saved[k] += pm * row[k]


@njit(nogil=True, cache=True)
def attention_forward(
    indptr, columns, add_loop, table, ids, t,
    shape, slope, dropout, out, saved, rows,
):  # fmt: skip
    """Rows rows[0]..rows[1] of out [own, H·D] and saved [own, H·D + 2H] = [q | q1 | logsumexp].

    table  [own + ghosts, H·D + H] = [z | s]; ids [own + ghosts] relabelled; t [own, H]
    shape  (H, D); slope of leaky below 0; dropout (keys, threshold, scale), threshold 0: none
    """
    heads, d = shape
    hd = heads * d
    keys, threshold, scale = dropout
    top, total, kept = np.empty(heads, table.dtype), np.empty(heads, table.dtype), np.ones(heads, table.dtype)
    for v in range(rows[0], rows[1]):
        out[v, :] = 0
        saved[v, :] = 0
        total[:] = 0
        loop = 1 if add_loop[v] else 0
        if indptr[v] == indptr[v + 1] and not loop:
            continue
        top[:] = table[v if loop else columns[indptr[v]], hd:]
        for e in range(indptr[v], indptr[v + 1]):
            for h in range(heads):
                top[h] = max(top[h], table[columns[e], hd + h])
        for h in range(heads):  # leaky is increasing: this is the row's largest score, so nothing overflows
            x = top[h] + t[v, h]
            top[h] = x if x > 0 else x * slope
        for e in range(indptr[v], indptr[v + 1] + loop):
            u = columns[e] if e < indptr[v + 1] else v
            if threshold > 0:
                for h in range(heads):
                    kept[h] = scale if keep(keys, threshold, ids[u], ids[v], h) else 0
            _forward_edge(table[u], t[v], top, kept, slope, shape, out[v], saved[v], total)
        for h in range(heads):
            inverse = total.dtype.type(1) / total[h]
            saved[v, hd + h] *= inverse
            saved[v, hd + heads + h] = top[h] + log(total[h])
            for k in range(h * d, h * d + d):
                out[v, k] *= inverse
                saved[v, k] *= inverse


@njit(nogil=True, cache=True)
def _backward_edge(row, s, kept, slope, shape, grad, second, dot):
    """Add one out-edge to the sums of its source: grad = dz, second = sum of a·m·l'·g, dot = sum of a·l'·(g·out)."""
    heads, d = shape
    hd = heads * d
    for h in range(heads):
        x = s[h] + row[hd + heads + h]
        # a probability is at most 1: exact in pipe mode, and stale rows, which may disagree, stay finite
        a = exp(min((x if x > 0 else x * slope) - row[hd + 2 * heads + h], row.dtype.type(0)))
        p = a if x > 0 else a * slope
        dot[h] += p * row[hd + h]
        am, pm = a * kept[h], p * kept[h]
        for k in range(h * d, h * d + d):
            grad[k] += am * row[k]
            second[k] += pm * row[k]


@njit(nogil=True, cache=True)
def attention_backward(
    indptr, columns, add_loop, table, ids, source, saved,
    shape, slope, dropout, grad, rows,
):  # fmt: skip
    """Rows rows[0]..rows[1] of grad [own, H·D + 2H] = [dz | ds | dt].

    indptr, columns  out-edges; table [own + ghosts, H·D + 3H] = [g | g·out | t | logsumexp]
    source [own, H·D + 2H] = [z | s | t], saved [own, H·D + 2H] of the forward pass
    """
    heads, d = shape
    hd = heads * d
    keys, threshold, scale = dropout
    second, dot = np.empty(hd, table.dtype), np.empty(heads, table.dtype)
    kept = np.ones(heads, table.dtype)
    for u in range(rows[0], rows[1]):
        grad[u, :] = 0
        second[:] = 0
        dot[:] = 0
        s = source[u, hd : hd + heads]
        for e in range(indptr[u], indptr[u + 1] + (1 if add_loop[u] else 0)):
            v = columns[e] if e < indptr[u + 1] else u
            if threshold > 0:
                for h in range(heads):
                    kept[h] = scale if keep(keys, threshold, ids[u], ids[v], h) else 0
            _backward_edge(table[v], s, kept, slope, shape, grad[u], second, dot)
        for h in range(heads):
            ds, dt = -dot[h], -table[u, hd + h] * saved[u, hd + h]
            for k in range(h * d, h * d + d):
                ds += source[u, k] * second[k]
                dt += table[u, k] * saved[u, k]
            grad[u, hd + h], grad[u, hd + heads + h] = ds, dt

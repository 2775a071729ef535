# mypy: ignore-errors
"""Edge softmax attention, fused: no per-edge buffer. Forward gathers [z | s] over in-edges, backward [g | g·out | t |
logsumexp] over out-edges; both walk the edges of a row in order and add one by one.

Per head, with e = leaky(s_u + t_v), m the attention dropout of the edge (0 or its scale) and l' the slope of leaky:
  forward    out_v = sum of a·m·z_u     q_v = sum of a·m·l'·z_u     q1_v = sum of a·l'     a = exp(e - logsumexp_v)
  backward   dz_u = sum of a·m·g_v      ds_u = z_u · (sum of a·m·l'·g_v) - sum of a·l'·(g·out)_v
             dt_v = g_v · q_v - (g·out)_v · q1_v
Rows of v in another interval may have been made from other rows than u has now. Where they may (Blocks), masks are
those of their epoch, and their edges count in dz, but not in ds: z_u · g_v would not match (g·out)_v, gradients of the
scores of one softmax would no longer add up to 0, and scores would drift.

Self loops come last. A first walk finds the row's largest score, so nothing overflows. A call takes heads together as
long as their sums fit into registers, or a part of one wide head; each head's and column's numbers are the same however
they are grouped. Source: Velickovic et al. 2018; the sums q and q1 avoid a second walk backwards.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from common.saga.masks import ATTENTION_HEADS_PER_KEY
from graph_server.graph.compiling import kernel
from graph_server.graph.exponential import exp, log
from graph_server.graph.vectors import (
    add_columns,
    at,
    load,
    maximum,
    minimum,
    prefetch,
    spread,
    store,
    where_byte,
    where_positive,
    zeros,
)

COLUMNS = 128
"""Of one group of heads: with two sums per column they take half the registers of AVX-512."""
AHEAD = 32
"""Edges between a prefetch and its use: about two rows of edges, so that the first walk over a row finds its scores."""

_GOLDEN, _MIX1, _MIX2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _BYTE = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(255)


@kernel()
def splitmix64(x):
    """One step of Steele, Lea & Flood's generator from state x, modulo 2^64."""
    z = x + _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@kernel()
def edge_word(key, source, target):
    """A byte for each of eight heads; source and target are relabelled ids."""
    return splitmix64(splitmix64(key + np.uint64(source)) + np.uint64(target))


@kernel()
def keep(keys, threshold, source, target, head):
    """Whether attention dropout keeps this edge for this head: byte head mod 8 of the edge's word.

    keys [ceil(heads / 8)] uint64; source and target are relabelled ids.
    """
    word = edge_word(keys[head // 8], source, target)
    return (word >> np.uint64(8 * (head % 8))) & _BYTE >= np.uint64(threshold)


class Blocks(NamedTuple):
    """Where rows are of several epochs: those of an interval are of one.

    keys      [ceil(heads / 8), num_intervals] uint64, of the rows' epoch: the masks are those of their forward
    is_own    [num_intervals] 1 for the reader's own interval, else 0: an edge without gradient for its score
    interval  [own + ghosts] of each row of the table
    """

    keys: npt.NDArray[np.uint64]
    is_own: npt.NDArray[np.floating]
    interval: npt.NDArray[np.int16]


class Group(NamedTuple):
    """Heads first_head .. first_head + heads, and of each `width` columns from first_column on."""

    first_head: int
    first_column: int
    heads: int
    width: int


def groups(heads: int, d: int) -> Iterator[Group]:
    """Cover all heads and columns. The heads of a group share words of attention dropout; they have all their columns,
    or it is one head."""
    together = max(n for n in (1, 2, 4, ATTENTION_HEADS_PER_KEY) if n == 1 or n * d <= COLUMNS)
    for head in range(0, heads, together):
        for column in range(0, d, COLUMNS):
            yield Group(head, column, min(together, heads - head), min(COLUMNS, d - column))


def attention_forward(
    indptr, columns, add_loop, table, ids, t,
    shape, slope, dropout, out, saved, rows,
):  # fmt: skip
    """Rows rows[0]..rows[1] of out [own, H·D] and saved [own, H·D + 2H] = [q | q1 | logsumexp].

    table  [own + ghosts, H·D + H] = [z | s]; ids [own + ghosts] relabelled; t [own, H], may be columns of a wider array
    shape  (H, D); slope of leaky below 0; dropout (keys, threshold, scale), threshold 0: none
    """
    for group in groups(*shape):
        forward = forward_kernel(group.heads, group.width, table.dtype.name, drops=dropout[1] > 0)
        forward(
            indptr, columns, add_loop, table, ids, t,
            (*group[:2], *shape), slope, _of_group(dropout, group), out, saved, rows,
        )  # fmt: skip


def attention_backward(
    indptr, columns, add_loop, table, ids, source, saved,
    shape, slope, dropout, grad, rows,
):  # fmt: skip
    """Rows rows[0]..rows[1] of grad [own, H·D + 2H] = [dz | ds | dt].

    indptr, columns  out-edges; table [own + ghosts, H·D + 3H] = [g | g·out | t | logsumexp]
    source [own, H·D + 2H] = [z | s | t], saved [own, H·D + 2H] of the forward pass
    dropout as forward, but Blocks instead of keys where rows are of several epochs
    """
    aged = isinstance(dropout[0], Blocks)
    for group in groups(*shape):
        backward = backward_kernel(group.heads, group.width, table.dtype.name, drops=dropout[1] > 0, aged=aged)
        backward(
            indptr, columns, add_loop, table, ids, source, saved,
            (*group[:2], *shape), slope, _of_group(dropout, group), grad, rows,
        )  # fmt: skip


def _of_group(dropout, group: Group):
    """(key, or those of Blocks and the rest of it; how far the group's first byte is shifted, threshold, scale)."""
    keys, threshold, scale = dropout
    word, byte = divmod(group.first_head, ATTENTION_HEADS_PER_KEY)
    key = (keys.keys[word], *keys[1:]) if isinstance(keys, Blocks) else keys[word]
    return key, np.uint64(8 * byte), threshold, scale


@register_jitable(forceinline=True)
def _leaky(x, slope):
    return where_positive(x, x, x * slope)


@cache
def forward_kernel(heads: int, width: int, number: str, *, drops: bool):
    lanes = heads * width

    @kernel(f"{heads}x{width}_{number}{'_drops' if drops else ''}")
    def forward(indptr, columns, add_loop, table, ids, t, place, slope, dropout, out, saved, rows):
        head, column, all_heads, d = place
        first, score = head * d + column, all_heads * d + head
        key, shift, threshold, scale = dropout
        stride, stride_t, last = table.strides[0] // table.itemsize, t.strides[0] // t.itemsize, len(columns) - 1
        for v in range(rows[0], rows[1]):
            begin, end, loop = indptr[v], indptr[v + 1], add_loop[v]
            sums, q = zeros(table, lanes), zeros(table, lanes)
            total, q1, top = zeros(table, heads), zeros(table, heads), zeros(table, heads)
            if begin < end or loop:
                top = load(table, (v if loop else at(columns, begin)) * stride + score, heads)
            for e in range(begin, end):
                top = maximum(top, load(table, at(columns, e) * stride + score, heads))
            own = load(t, v * stride_t + head, heads)
            top = _leaky(top + own, slope)  # leaky is increasing: the row's largest score
            for e in range(begin, end + loop):
                ahead = at(columns, min(e + AHEAD, last)) * stride
                prefetch(table, ahead + first, lanes)
                prefetch(table, ahead + score, heads)
                u = at(columns, e) if e < end else v
                x = load(table, u * stride + score, heads) + own
                a = exp(_leaky(x, slope) - top)
                p = where_positive(x, a, a * slope)
                total += a
                q1 += p
                if drops:
                    word = edge_word(key, at(ids, u), at(ids, v))
                    kept = where_byte(word >> shift, threshold, scale, heads)
                    a, p = a * kept, p * kept
                row = load(table, u * stride + first, lanes)
                sums += spread(a, width) * row
                q += spread(p, width) * row
            own_row = v * saved.shape[1]
            if begin < end or loop:
                inverse = 1 / total
                sums, q, q1 = sums * spread(inverse, width), q * spread(inverse, width), q1 * inverse
                total = top + log(total)
            store(out, v * out.shape[1] + first, sums)
            store(saved, own_row + first, q)
            store(saved, own_row + score, q1)
            store(saved, own_row + score + all_heads, total)

    return forward


@cache
def backward_kernel(heads: int, width: int, number: str, *, drops: bool, aged: bool):
    lanes, tail = heads * width, 3 * heads

    @kernel(f"{heads}x{width}_{number}{'_drops' if drops else ''}{'_aged' if aged else ''}")
    def backward(indptr, columns, add_loop, table, ids, source, saved, place, slope, dropout, grad, rows):
        head, column, all_heads, d = place
        first, score = head * d + column, all_heads * d + head
        key, shift, threshold, scale = dropout
        stride, stride_own, last = table.strides[0] // table.itemsize, source.shape[1], len(columns) - 1
        for u in range(rows[0], rows[1]):
            end, own, own_row = indptr[u + 1], u * stride, u * stride_own
            s = load(source, own_row + score, heads)
            dz, second, dot = zeros(table, lanes), zeros(table, lanes), zeros(table, heads)
            for e in range(indptr[u], end + add_loop[u]):
                ahead = at(columns, min(e + AHEAD, last)) * stride
                prefetch(table, ahead + first, lanes)
                prefetch(table, ahead + score, tail)
                v = at(columns, e) if e < end else u
                row = v * stride
                x = s + load(table, row + score + all_heads, heads)
                # a probability is at most 1: exact in pipe mode, and stale rows, which may disagree, stay finite
                a = exp(minimum(_leaky(x, slope) - load(table, row + score + 2 * all_heads, heads), 0))
                p = where_positive(x, a, a * slope)
                if aged:
                    block = at(key[2], v)
                    p = p * key[1][block]
                dot += p * load(table, row + score, heads)
                if drops:
                    word = edge_word(key[0][block] if aged else key, at(ids, u), at(ids, v))
                    kept = where_byte(word >> shift, threshold, scale, heads)
                    a, p = a * kept, p * kept
                g = load(table, row + first, lanes)
                dz += spread(a, width) * g
                second += spread(p, width) * g
            if column == 0:
                ds, dt = dot * -1, load(table, own + score, heads) * load(saved, own_row + score, heads) * -1
            else:  # go on where the columns before ended
                ds, dt = load(grad, own_row + score, heads), load(grad, own_row + score + all_heads, heads)
            z, q = load(source, own_row + first, lanes), load(saved, own_row + first, lanes)
            store(grad, own_row + first, dz)
            store(grad, own_row + score, add_columns(ds, z * second))
            store(grad, own_row + score + all_heads, add_columns(dt, load(table, own + first, lanes) * q))

    return backward

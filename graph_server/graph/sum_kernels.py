# mypy: ignore-errors
"""Weighted sums over in- or out-edges, one edge after the other in the order of the rows' lists.

A row's sum stays in registers while its edges pass. Rows wider than COLUMNS are summed block by block of columns; that
changes no bit, for every column is a sum of its own. Source: Kipf & Welling 2017, eq. 2, with the factors of the edges
split over their ends.
"""

from functools import cache

from graph_server.graph.compiling import kernel
from graph_server.graph.vectors import at, load, prefetch, store, zeros

COLUMNS = 128
"""Of one block: their sums fill the registers of AVX2, and a quarter of those of AVX-512."""
AHEAD, NUMBERS_AHEAD = 8, 1024
"""Edges between a prefetch and its use, or more where rows are so narrow that this many numbers are more edges."""


def weighted_sum(indptr, columns, add_loop, table, post, out, rows, weights=None):
    """out[v] = post[v] · (sum over v's edges of table[column], then table[v] if add_loop[v]), rows[0] <= v < rows[1].

    table    [own + ghosts, d], its rows already scaled by their owner: float32, float64, or bfloat16 in uint16; they
             may lie further apart than d
    out      [own, d], written in place; float32 for bfloat16
    weights  [edges] or None: what each edge's row is multiplied by, and rounded, before it is added
    """
    for first in range(0, table.shape[1], COLUMNS):
        sum_ = sum_kernel(min(COLUMNS, table.shape[1] - first), table.dtype.name)
        sum_(indptr, columns, weights, add_loop, table, first, post, out, rows)


@cache
def sum_kernel(width: int, number: str):
    ahead = max(AHEAD, NUMBERS_AHEAD // width)

    @kernel(f"{width}_{number}")
    def sum_columns(indptr, columns, weights, add_loop, table, first, post, out, rows):
        stride, last = table.strides[0] // table.itemsize, len(columns) - 1
        for v in range(rows[0], rows[1]):
            total = zeros(table, width)
            for e in range(indptr[v], indptr[v + 1]):
                prefetch(table, at(columns, min(e + ahead, last)) * stride + first, width)
                row = load(table, at(columns, e) * stride + first, width)
                total += row if weights is None else row * weights[e]
            if add_loop[v]:
                total += load(table, v * stride + first, width)
            store(out, v * out.shape[1] + first, total * post[v])

    return sum_columns

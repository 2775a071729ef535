"""Weighted sums over in- or out-edges: plain loops, one edge after the other in the order of the rows' lists.

Source: Kipf & Welling 2017, eq. 2, with the factors of the edges split over their ends.
"""

from numba import njit


@njit(nogil=True, cache=True)
def weighted_sum(indptr, columns, add_loop, table, post, out, rows):
    """out[v] = post[v] · (sum over v's edges of table[column], then table[v] if add_loop[v]), rows[0] <= v < rows[1].

    table [own + ghosts, d], its rows already scaled by their owner; out [own, d], written in place.
    """
    width = table.shape[1]
    for v in range(rows[0], rows[1]):
        for k in range(width):
            out[v, k] = 0
        for e in range(indptr[v], indptr[v + 1]):
            u = columns[e]
            for k in range(width):
                out[v, k] += table[u, k]
        if add_loop[v]:
            for k in range(width):
                out[v, k] += table[v, k]
        for k in range(width):
            out[v, k] *= post[v]

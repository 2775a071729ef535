"""The deal: which graph server gets which interval.

Intervals that read each other lie together, and the edges balance. The deal changes where things are computed, never
what: any deal gives the same weights. Deterministic; ties go to the lower number.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from graph_server.graph.csr import Indices, Ints

PASSES = 4
SLACK = 1.05
LONE = 1e-3

Owners = npt.NDArray[np.int32]


def interval_edges(indptr: Ints, sources: Indices, bounds: Ints) -> Ints:
    """[I, I] int64: how many in-edges the vertices of interval i have from interval j.

    indptr, sources  in-edges of the relabelled graph
    """
    ends = indptr[bounds]
    return np.stack([edges_from(sources[first:last], bounds) for first, last in pairwise(ends)])


def edges_from(sources: Indices, bounds: Ints) -> Ints:
    """[I] int64: how many of these edges come from each interval."""
    return np.bincount(np.searchsorted(bounds, sources, side="right") - 1, minlength=len(bounds) - 1)


def deal(weights: Ints, edges: Ints, num_graph_servers: int) -> Owners:
    """The owner of each interval, [I] int32.

    weights  [I] work of an interval; 0 means it is empty
    edges    [I, I] as from `interval_edges`

    A graph server takes at most 1.05 of the mean weight unless it is the least loaded. With at least as many intervals
    as graph servers each gets one, a non-empty one as long as there are such; otherwise some graph servers get none.
    """
    table = _Table(weights, edges, num_graph_servers)
    full = np.flatnonzero(weights > 0)
    table.grow(full)
    table.improve(full[np.argsort(-weights[full], kind="stable")])
    table.spread(np.flatnonzero(weights <= 0))
    return table.owners


class _Table:
    """What has been dealt so far."""

    def __init__(self, weights: Ints, edges: Ints, num_graph_servers: int) -> None:
        self.weights, self.edges = weights, edges
        self.owners = np.full(len(weights), -1, np.int32)
        self.loads = np.zeros(num_graph_servers)
        self.num_dealt = np.zeros(num_graph_servers, np.int64)
        self.cap = max(SLACK * float(weights.sum()) / num_graph_servers, 1.0)

    def grow(self, intervals: Ints) -> None:
        """One graph server after the other: its heaviest interval first, then whichever reads its intervals most.

        It stops at its share of what is left, and early enough to leave one interval for each that comes after it.
        """
        left = np.zeros(len(self.owners), np.bool_)
        left[intervals] = True
        for server in range(len(self.loads)):
            after = len(self.loads) - server - 1
            share = float(self.weights[left].sum()) / (after + 1)
            pull = self.weights.astype(np.float64)
            while left.sum() > after or (left.any() and self.num_dealt[server] == 0):
                fits = left & (self.loads[server] + self.weights <= SLACK * share)
                if self.num_dealt[server] == 0:
                    chosen = int(np.where(left, pull, -1.0).argmax())
                    pull[:] = 0.0
                elif fits.any() and self.loads[server] < share:
                    chosen = int(np.where(fits, pull, -1.0).argmax())
                else:
                    break
                pull += self.edges[chosen] + self.edges[:, chosen]
                left[chosen] = False
                self._move(chosen, server, 1)

    def spread(self, intervals: Ints) -> None:
        """Empty intervals, to those without any first."""
        for interval in intervals:
            self._move(interval, int(self.num_dealt.argmin()), 1)

    def put(self, interval: int) -> None:
        fits = self.loads + self.weights[interval] <= self.cap
        if fits.any():
            score = (self._pull(interval) + LONE) * (1.0 - self.loads / self.cap)
            server = int(np.where(fits, score, -np.inf).argmax())
        else:
            server = int(self.loads.argmin())
        self._move(interval, server, 1)

    def improve(self, intervals: Ints) -> None:
        """Deal each once more, knowing where all others lie; nobody's last interval is taken."""
        for _ in range(PASSES):
            for interval in intervals:
                server = int(self.owners[interval])
                if self.num_dealt[server] > 1:
                    self._move(interval, server, -1)
                    self.put(interval)

    def _pull(self, interval: int) -> npt.NDArray[np.float64]:
        """[servers] edges between this interval and what each graph server already has."""
        dealt = np.flatnonzero(self.owners >= 0)
        between = self.edges[interval, dealt] + self.edges[dealt, interval]
        pull = np.bincount(self.owners[dealt], weights=between, minlength=len(self.loads))
        return pull.astype(np.float64)

    def _move(self, interval: int, server: int, sign: int) -> None:
        self.owners[interval] = server if sign > 0 else -1
        self.loads[server] += sign * float(self.weights[interval])
        self.num_dealt[server] += sign

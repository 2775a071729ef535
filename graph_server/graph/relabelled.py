"""The edges of a graph under the cut's numbers, interval by interval: out of memory, or out of a file."""

from typing import Protocol

import numpy as np

from graph_server.graph.csr import Csr, EdgeList, Ints, build, group, is_symmetric, offsets
from graph_server.graph.cut import Cut


class RelabelledEdges(Protocol):
    @property
    def num_edges(self) -> int: ...
    @property
    def symmetric(self) -> bool:
        """In-edges equal out-edges."""
        ...

    def block(self, interval: int) -> Csr:
        """In-edges of an interval's vertices: sources by their numbers in the whole graph, ascending in a row."""
        ...


class EdgesInMemory:
    def __init__(self, sources: Ints, targets: Ints, cut: Cut) -> None:
        self._csr = build(EdgeList(cut.rank[sources], cut.rank[targets], len(cut.order)))
        self._bounds = cut.bounds

    @property
    def num_edges(self) -> int:
        return len(self._csr.indices)

    @property
    def symmetric(self) -> bool:
        return is_symmetric(self._csr)

    def block(self, interval: int) -> Csr:
        first, last = int(self._bounds[interval]), int(self._bounds[interval + 1])
        start = self._csr.indptr[first]
        return Csr(self._csr.indptr[first : last + 1] - start, self._csr.indices[start : self._csr.indptr[last]])


class EdgesOnDisk:
    """in_edges: of the graph before the cut, with a mapped file of sources; an interval is held at a time."""

    def __init__(self, in_edges: Csr, cut: Cut, *, symmetric: bool) -> None:
        self._in_edges, self._cut, self.symmetric = in_edges, cut, symmetric

    @property
    def num_edges(self) -> int:
        return len(self._in_edges.indices)

    def block(self, interval: int) -> Csr:
        indptr, indices = self._in_edges
        rows = self._cut.order[self._cut.bounds[interval] : self._cut.bounds[interval + 1]]
        degrees = indptr[rows + 1] - indptr[rows]
        places = np.repeat(indptr[rows] - offsets(degrees)[:-1], degrees) + np.arange(degrees.sum())
        sources = self._cut.rank[indices[places]]
        return group(np.repeat(np.arange(len(rows)), degrees), sources, len(rows), len(self._cut.order))

"""The edges of a graph under the cut's numbers, interval by interval: out of memory, or out of a file."""

from typing import Protocol

import numpy as np

from graph_server.graph.csr import Csr, EdgeList, Ints, Weights, build, group, is_symmetric, offsets
from graph_server.graph.cut import Cut


class RelabelledEdges(Protocol):
    @property
    def num_edges(self) -> int: ...
    @property
    def symmetric(self) -> bool:
        """In-edges equal out-edges, weights included."""
        ...

    @property
    def weighted(self) -> bool: ...

    def block(self, interval: int) -> Csr:
        """In-edges of an interval's vertices: sources by their numbers in the whole graph, ascending in a row."""
        ...


class EdgesInMemory:
    def __init__(self, sources: Ints, targets: Ints, cut: Cut, weights: Weights | None = None) -> None:
        self._csr = build(EdgeList(cut.rank[sources], cut.rank[targets], len(cut.order), weights))
        self._bounds = cut.bounds

    @property
    def num_edges(self) -> int:
        return len(self._csr.indices)

    @property
    def symmetric(self) -> bool:
        return is_symmetric(self._csr)

    @property
    def weighted(self) -> bool:
        return self._csr.weights is not None

    def block(self, interval: int) -> Csr:
        indptr, indices, weights = self._csr
        first, last = int(self._bounds[interval]), int(self._bounds[interval + 1])
        edges = slice(int(indptr[first]), int(indptr[last]))
        own = indptr[first : last + 1] - indptr[first]
        return Csr(own, indices[edges], None if weights is None else weights[edges])


class EdgesOnDisk:
    """in_edges: of the graph before the cut, with mapped files of sources and weights; one interval is held."""

    def __init__(self, in_edges: Csr, cut: Cut, *, symmetric: bool) -> None:
        self._in_edges, self._cut, self.symmetric = in_edges, cut, symmetric

    @property
    def num_edges(self) -> int:
        return len(self._in_edges.indices)

    @property
    def weighted(self) -> bool:
        return self._in_edges.weights is not None

    def block(self, interval: int) -> Csr:
        indptr, indices, weights = self._in_edges
        rows = self._cut.order[self._cut.bounds[interval] : self._cut.bounds[interval + 1]]
        degrees = indptr[rows + 1] - indptr[rows]
        places = np.repeat(indptr[rows] - offsets(degrees)[:-1], degrees) + np.arange(degrees.sum())
        return group(
            np.repeat(np.arange(len(rows)), degrees),
            self._cut.rank[indices[places]],
            len(rows),
            len(self._cut.order),
            weights=None if weights is None else weights[places],
        )

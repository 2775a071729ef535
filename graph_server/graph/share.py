"""Which files of a graph folder one graph server reads, by the deal and by who reads whom: it opens no others.

own intervals                    everything
intervals that they read         degrees and self loops of ghosts; features where a Gather reads these themselves
intervals that read them         on a directed graph also the edges, for the transpose
"""

from collections.abc import Iterator, Sequence

import numpy as np

from common.saga.cost import stored_tensors
from common.saga.program import Programs
from graph_server.graph.csr import Ints
from graph_server.graph.folder_reader import INTERVAL_EDGES, GraphFolder, IntervalArrays, interval_file
from graph_server.graph.partition_book import PartitionBook

OF_WEIGHTS = ("weights", "weight_sums")
EDGES = ("indptr", "sources", "weights")


def files_of_server(folder: GraphFolder, book: PartitionBook, server: int, *, ghost_features: bool) -> frozenset[str]:
    """Paths relative to the folder; the manifest is not among them."""
    own, edges = book.own_intervals(server), folder.interval_edges
    degrees = "weight_sums" if folder.manifest.weighted else "indptr"
    wanted = {INTERVAL_EDGES, *_files(own, (*IntervalArrays._fields, *OF_WEIGHTS))}
    wanted |= set(_files(_read_by(edges, own), (degrees, "loops", *(("features",) if ghost_features else ()))))
    if not folder.manifest.symmetric:
        wanted |= set(_files(readers_of(edges, own), EDGES))
    return frozenset(wanted & folder.manifest.files.keys())


def reads_ghost_features(programs: Programs) -> bool:
    """Whether the first Gather reads features, so that those of ghosts come with the partition."""
    return ("constant", "source0") in stored_tensors(programs)


def readers_of(edges: Ints, own: Sequence[int]) -> list[int]:
    """Intervals with an in-edge from one of these. `edges`: [I, I] in-edges of interval i from interval j."""
    return _nonzero(edges[:, list(own)].sum(axis=1))


def _read_by(edges: Ints, own: Sequence[int]) -> list[int]:
    return _nonzero(edges[list(own)].sum(axis=0))


def _nonzero(num_edges: Ints) -> list[int]:
    return [int(interval) for interval in np.flatnonzero(num_edges)]


def _files(intervals: Sequence[int], arrays: Sequence[str]) -> Iterator[str]:
    return (interval_file(interval, array) for interval in intervals for array in arrays)

"""Cuts of a graph whose edges lie on disk: the same as of one in memory, where the method can do with so little."""

import numpy as np

from common.errors import DatasetError
from graph_server.graph.csr import Bools
from graph_server.graph.cut import Cut, cut_of_clusters, hash_clusters, range_clusters, streamed_clusters
from graph_server.large.sorted_edges import SortedEdges


def cut_on_disk(edges: SortedEdges, num_intervals: int, *, method: str, seed: int, train: Bools) -> Cut:
    """Raises DatasetError for METIS."""
    num_nodes = edges.in_edges.num_rows
    if num_intervals == 1:
        clusters = np.zeros(num_nodes, np.int64)
    elif method == "range":
        clusters = range_clusters(np.diff(edges.in_edges.indptr), edges.out_degree, num_intervals)
    elif method == "hash":
        clusters = hash_clusters(num_nodes, num_intervals, seed)
    elif method == "metis":
        raise DatasetError(
            what="cut.method: metis within --memory-limit",
            why="METIS holds the whole graph several times over",
            fix="choose stream, balanced or fennel, or leave --memory-limit away",
        )
    else:
        clusters = streamed_clusters(edges.structure, num_intervals, method, seed=seed, train=train)
    return cut_of_clusters(clusters, num_intervals, method=method, seed=seed)

"""What a cut and its deal are worth: what is cut, who holds whose rows, how even it is; interval by interval."""

import msgspec
import numpy as np
import numpy.typing as npt

from common.saga.loss import TRAIN
from graph_server.graph.csr import Ints
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.partition_book import PartitionBook
from graph_server.graph.truth import known


class ServerShare(msgspec.Struct, frozen=True, kw_only=True):
    """Of one graph server. ghosts: rows of others that its Gathers read; backward_ghosts: that its ∇Gathers read."""

    intervals: int
    vertices: int
    edges: int
    train_vertices: int
    ghosts: int
    backward_ghosts: int


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """cut: the share of edges whose ends lie in two intervals, and on two graph servers. replication: rows that are
    held, ghosts included, for each vertex. balance: the largest share over the mean one; 1 is even."""

    cut_between_intervals: float
    cut_between_servers: float
    replication: float
    edge_balance_of_servers: float
    train_balance_of_servers: float
    edge_balance_of_intervals: float
    train_balance_of_intervals: float
    num_without_loop: int
    servers: tuple[ServerShare, ...]


def shares(folder: GraphFolder, book: PartitionBook) -> Shares:
    between = np.asarray(folder.interval_edges)
    servers = range(book.num_graph_servers)
    read = _Readers(folder, book)
    edges, train = between.sum(axis=1), read.train
    total = max(int(edges.sum()), 1)
    together = book.owners[:, None] == book.owners[None, :]
    of_servers = [np.bincount(book.owners, weights=values, minlength=len(servers)) for values in (edges, train)]
    ghosts = [read.ghosts(server) for server in servers]
    return Shares(
        cut_between_intervals=float((total - np.trace(between)) / total),
        cut_between_servers=float(between[~together].sum() / total),
        replication=1 + sum(forward for forward, _ in ghosts) / max(book.num_nodes, 1),
        edge_balance_of_servers=_balance(of_servers[0]),
        train_balance_of_servers=_balance(of_servers[1]),
        edge_balance_of_intervals=_balance(edges),
        train_balance_of_intervals=_balance(train),
        num_without_loop=read.num_without_loop,
        servers=tuple(
            ServerShare(
                intervals=int((book.owners == server).sum()),
                vertices=int(np.diff(book.bounds)[book.owners == server].sum()),
                edges=int(of_servers[0][server]),
                train_vertices=int(of_servers[1][server]),
                ghosts=ghosts[server][0],
                backward_ghosts=ghosts[server][1],
            )
            for server in servers
        ),
    )


class _Readers:
    """One look at every interval: which rows each graph server reads, a bit for each."""

    def __init__(self, folder: GraphFolder, book: PartitionBook) -> None:
        self._book, self._symmetric = book, folder.manifest.symmetric
        shape = (book.num_graph_servers, book.num_nodes)
        self._forward = np.zeros(shape, np.bool_)
        self._backward = self._forward if self._symmetric else np.zeros(shape, np.bool_)
        self.train, self.num_without_loop = np.zeros(book.num_intervals, np.int64), 0
        for interval in range(book.num_intervals):
            self._look(folder, interval)

    def ghosts(self, server: int) -> tuple[int, int]:
        """Rows of others that it reads in a Gather, and in a ∇Gather."""
        others = np.repeat(self._book.owners != server, np.diff(self._book.bounds))
        forward, backward = (int((read[server] & others).sum()) for read in (self._forward, self._backward))
        return forward, backward

    def _look(self, folder: GraphFolder, interval: int) -> None:
        arrays, book = folder.interval(interval), self._book
        owner = int(book.owners[interval])
        self._forward[owner, arrays.sources] = True
        if not self._symmetric:
            rows = np.repeat(np.arange(len(arrays.indptr) - 1), np.diff(arrays.indptr)) + int(book.bounds[interval])
            self._backward[book.owner_of(arrays.sources), rows] = True
        labelled = known(np.asarray(arrays.labels)).reshape(len(arrays.labels), -1).any(axis=1)
        self.train[interval] = int(((arrays.masks & TRAIN != 0) & labelled).sum())
        self.num_without_loop += int((~arrays.loops).sum())


def _balance(values: Ints | npt.NDArray[np.float64]) -> float:
    mean = float(np.mean(values))
    return float(np.max(values)) / mean if mean else 1.0

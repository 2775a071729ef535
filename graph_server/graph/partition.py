"""A partition: everything one graph server holds of the graph, read from the graph folder's files.

Which intervals it owns comes from the partition book; the rest is derived here, at load: local columns, ghosts, whom
to send which rows, and the out-edges. On a symmetric graph in-edges and out-edges are one object and of other graph
servers' intervals only the degrees of ghosts are read; on a directed graph also the edges of those that read own rows.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graph_server.graph.csr import (
    Bools,
    Csr,
    Indices,
    Ints,
    Weights,
    damaged_edges,
    group,
    index_dtype,
    offsets,
    validate,
)
from graph_server.graph.deal import deal
from graph_server.graph.edges import Edges, localise, make_edges, own_rows
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.partition_book import PartitionBook
from graph_server.graph.share import readers_of

Degrees = Ints | npt.NDArray[np.float64]


def deal_folder(folder: GraphFolder, num_graph_servers: int) -> PartitionBook:
    """Deal a folder's intervals; an interval's work is its rows and its edges in both directions."""
    edges = np.asarray(folder.interval_edges)
    weights = np.diff(folder.bounds) + edges.sum(axis=1) + edges.sum(axis=0)
    return PartitionBook(folder.bounds, deal(weights, edges, num_graph_servers), num_graph_servers)


@dataclass(frozen=True, eq=False)
class Partition:
    """own rows are the rows of `own`, in the order of their relabelled ids.

    own                  own intervals, ascending
    rows                 own interval -> its own rows
    in_edges, out_edges  what own rows read in a Gather and in a ∇Gather; the same object when the graph is symmetric
    in_degree            [own] int64, with multiplicity, explicit self loops included; float64 sums of weights where
                         edges have them
    has_self_loop        [own] bool
    ghost_in_degree, ghost_has_self_loop    the same for in_edges.ghosts
    """

    folder: GraphFolder
    server: int
    book: PartitionBook
    own: tuple[int, ...]
    rows: dict[int, slice]
    in_edges: Edges
    out_edges: Edges
    in_degree: Degrees
    has_self_loop: Bools
    ghost_in_degree: Degrees
    ghost_has_self_loop: Bools

    @classmethod
    def load(cls, folder: GraphFolder, book: PartitionBook, server: int) -> "Partition":
        """Raises DatasetError if the edges of an interval are damaged."""
        own = book.own_intervals(server)
        read = localise(_read_own(folder, own), book, server=server)
        if folder.manifest.symmetric:
            in_edges = out_edges = make_edges(read, read, book, server=server)
        else:
            readers = localise(_read_out_edges(folder, book, server), book, server=server)
            in_edges = make_edges(read, readers, book, server=server)
            out_edges = make_edges(readers, read, book, server=server)
        degrees, loops = _degrees(folder, book, in_edges)
        return cls(
            folder=folder,
            server=server,
            book=book,
            own=own,
            rows=own_rows(book, own),
            in_edges=in_edges,
            out_edges=out_edges,
            in_degree=_weight_sums(folder, own) if folder.manifest.weighted else np.diff(read.indptr),
            has_self_loop=_own_loops(folder, own),
            ghost_in_degree=degrees,
            ghost_has_self_loop=loops,
        )

    @property
    def num_own(self) -> int:
        return self.in_edges.num_rows

    @cached_property
    def ids(self) -> npt.NDArray[Any]:
        """[own] the user's id of each own row."""
        own_ids = self.in_edges.table_ids[: self.num_own]
        return np.asarray(self.folder.ids[own_ids])

    def features(self, interval: int) -> npt.NDArray[np.float32]:
        """[rows, F] float32 of an own interval, memory-mapped."""
        return self.folder.array(interval, "features")

    def labels(self, interval: int) -> npt.NDArray[Any]:
        """[rows] int64, -1 = unlabelled, or [rows, outputs] float32, NaN = unlabelled; memory-mapped."""
        return self.folder.array(interval, "labels")

    def masks(self, interval: int) -> npt.NDArray[np.uint8]:
        """[rows] uint8, train 1, valid 2, test 4, memory-mapped."""
        return self.folder.array(interval, "masks")

    def ghost_features(self) -> npt.NDArray[np.float32]:
        """[ghosts of in_edges, F] float32, read from the files of the intervals they live in."""
        found = np.empty((self.in_edges.num_ghosts, self.folder.manifest.num_features), np.float32)
        for interval, block in self.in_edges.ghost_blocks.items():
            positions = self.in_edges.table_ids[block] - self.book.bounds[interval]
            found[block.start - self.num_own : block.stop - self.num_own] = self.features(interval)[positions]
        return found


def _read_own(folder: GraphFolder, own: tuple[int, ...]) -> Csr:
    """The in-edges of the own rows, global ids. Copied interval by interval: a mapped file is an open file."""
    starts = offsets(np.array([folder.array(interval, "sources").size for interval in own], np.int64))
    sources = np.empty(starts[-1], index_dtype(folder.manifest.num_nodes))
    weights = np.empty(starts[-1], np.float32) if folder.manifest.weighted else None
    pointers = [np.zeros(1, np.int64)]
    for place, interval in enumerate(own):
        block = _read_interval(folder, interval)
        sources[starts[place] : starts[place + 1]] = block.indices
        if weights is not None and block.weights is not None:
            weights[starts[place] : starts[place + 1]] = block.weights
        pointers.append(block.indptr[1:] + starts[place])
    return Csr(np.concatenate(pointers), sources, weights)


def _own_loops(folder: GraphFolder, own: tuple[int, ...]) -> Bools:
    return np.concatenate([np.zeros(0, np.bool_), *(np.array(folder.array(interval, "loops")) for interval in own)])


def _weight_sums(folder: GraphFolder, own: tuple[int, ...]) -> npt.NDArray[np.float64]:
    return np.concatenate([np.zeros(0), *(np.array(folder.weight_sums(interval)) for interval in own)])


def _read_interval(folder: GraphFolder, interval: int) -> Csr:
    weights = folder.weights(interval)
    block = Csr(np.asarray(folder.array(interval, "indptr")), np.asarray(folder.array(interval, "sources")), weights)
    validate(block.indptr, block.indices, folder.manifest.num_nodes)
    if weights is not None and weights.shape != block.indices.shape:
        raise damaged_edges(f"interval {interval} has {len(block.indices)} edges and {len(weights)} weights")
    return block


def _read_out_edges(folder: GraphFolder, book: PartitionBook, server: int) -> Csr:
    """Who reads the own rows: [own] rows of global target ids, ascending."""
    own = book.own_intervals(server)
    rows = own_rows(book, own)
    row_of = np.full(book.num_nodes, -1, index_dtype(book.num_nodes))
    for interval in own:
        row_of[book.bounds[interval] : book.bounds[interval + 1]] = np.arange(rows[interval].start, rows[interval].stop)
    keys: list[Indices] = [np.zeros(0, row_of.dtype)]
    targets: list[Indices] = [np.zeros(0, row_of.dtype)]
    weights: list[Weights] = [np.zeros(0, np.float32)]
    for interval in readers_of(folder.interval_edges, own):
        block = _read_interval(folder, interval)
        found_rows, found_targets, kept = _readers(block, row_of, int(book.bounds[interval]))
        keys.append(found_rows)
        targets.append(found_targets)
        if block.weights is not None:
            weights.append(block.weights[kept])
    num_own = rows[own[-1]].stop if own else 0
    joined = np.concatenate(weights) if folder.manifest.weighted else None
    return group(np.concatenate(keys), np.concatenate(targets), num_own, book.num_nodes, weights=joined)


def _readers(block: Csr, row_of: Indices, first: int) -> tuple[Indices, Indices, Ints]:
    """The edges of an interval whose source is an own row: that row, the target's global id, the edge's place."""
    rows = row_of[block.indices]
    kept = np.flatnonzero(rows >= 0)
    targets = np.searchsorted(block.indptr, kept, side="right") - 1 + first
    return rows[kept], targets.astype(row_of.dtype), kept


def _degrees(folder: GraphFolder, book: PartitionBook, edges: Edges) -> tuple[Degrees, Bools]:
    """In-degree and self loop of each ghost: the offsets, or sums of weights, and loops of the intervals they live in,
    nothing else."""
    weighted = folder.manifest.weighted
    degrees: npt.NDArray[Any] = np.empty(edges.num_ghosts, np.float64 if weighted else np.int64)
    loops = np.empty(edges.num_ghosts, np.bool_)
    for interval, block in edges.ghost_blocks.items():
        positions = edges.table_ids[block] - book.bounds[interval]
        place = slice(block.start - edges.num_rows, block.stop - edges.num_rows)
        if weighted:
            degrees[place] = folder.weight_sums(interval)[positions]
        else:
            indptr = folder.array(interval, "indptr")
            degrees[place] = indptr[positions + 1] - indptr[positions]
        loops[place] = folder.array(interval, "loops")[positions]
    return degrees, loops

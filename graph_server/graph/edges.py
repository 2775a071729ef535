"""One graph server's edges in one direction: a CSR whose columns index a table of [own rows | ghost rows].

Rows are the vertices this graph server owns, columns the vertices they read. The order within a row is that of the
global ids, though own rows stand before ghosts in the table: a sum is added in the same order however the intervals
are dealt. What the owner sends and what the reader expects are derived apart, each from its own edges, and agree.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graph_server.graph.csr import Csr, Indices, Ints, Weights, index_dtype, offsets
from graph_server.graph.partition_book import PartitionBook


@dataclass(frozen=True, eq=False)
class Edges:
    """What the own rows read.

    indptr        [own + 1] int64
    columns       [nnz] int32 or int64: rows of the table, which has own + ghosts rows
    ghosts        [G] int64: relabelled ids, ascending; ghost g is table row own + g
    ghost_blocks  interval -> its rows of the table; only intervals that have ghosts here
    sends         own interval -> peer -> which of the interval's rows the peer holds as ghosts: [n] int64, counted
                  within the interval, ascending; only peers that hold some
    feeds         own interval -> the intervals whose rows it reads, ascending; itself among them if it reads its own
    table_ids     [own + G] int64: relabelled id of each row of the table
    weights       [nnz] float32, beside `columns`; None where every edge counts the same
    """

    indptr: Ints
    columns: Indices
    ghosts: Ints
    ghost_blocks: dict[int, slice]
    sends: dict[int, dict[int, Ints]]
    feeds: dict[int, tuple[int, ...]]
    table_ids: Ints
    weights: Weights | None = None

    @property
    def num_rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_ghosts(self) -> int:
        return len(self.ghosts)


def own_rows(book: PartitionBook, own: tuple[int, ...]) -> dict[int, slice]:
    """Own interval -> its rows among the own rows, which stand in the order of their relabelled ids."""
    ends = offsets(np.array([len(book.rows(interval)) for interval in own], np.int64)).tolist()
    return {interval: slice(ends[place], ends[place + 1]) for place, interval in enumerate(own)}


class Local(NamedTuple):
    """One direction before anybody else is thought of: see the fields of Edges."""

    indptr: Ints
    columns: Indices
    ghosts: Ints
    table_ids: Ints
    weights: Weights | None


def localise(csr: Csr, book: PartitionBook, *, server: int) -> Local:
    """Turn global ids into rows of the table.

    csr  [own] rows of global ids
    """
    own_ids = _ids(book, book.own_intervals(server))
    ghosts = _ghosts(csr.indices, own_ids, book.num_nodes)
    table_ids = np.concatenate([own_ids, ghosts])
    # A look-up table is linear where a search would cost log(table) per edge; it lives for this call only.
    row_of = np.empty(book.num_nodes, index_dtype(len(table_ids)))
    row_of[table_ids] = np.arange(len(table_ids))
    return Local(csr.indptr, row_of[csr.indices], ghosts, table_ids, csr.weights)


def make_edges(read: Local, reverse: Local, book: PartitionBook, *, server: int) -> Edges:
    """All that one direction needs.

    read     what each own vertex reads
    reverse  who reads each own vertex; the same object when the graph is symmetric
    """
    rows = own_rows(book, book.own_intervals(server))
    interval_of_row = book.interval_of(read.table_ids)
    owner_of_reader = book.owner_of(reverse.table_ids)
    return Edges(
        indptr=read.indptr,
        columns=read.columns,
        ghosts=read.ghosts,
        ghost_blocks=_blocks(read.ghosts, book, len(read.indptr) - 1),
        sends={interval: _sends(reverse, place, owner_of_reader, server) for interval, place in rows.items()},
        feeds={interval: _feeds(read, place, interval_of_row, book.num_intervals) for interval, place in rows.items()},
        table_ids=read.table_ids,
        weights=read.weights,
    )


def _ids(book: PartitionBook, intervals: tuple[int, ...]) -> Ints:
    runs = [np.arange(book.bounds[interval], book.bounds[interval + 1]) for interval in intervals]
    return np.concatenate(runs) if runs else np.zeros(0, np.int64)


def _ghosts(indices: Indices, own_ids: Ints, num_nodes: int) -> Ints:
    is_read = np.zeros(num_nodes, np.bool_)
    is_read[indices] = True
    is_read[own_ids] = False
    return np.flatnonzero(is_read)


def _blocks(ghosts: Ints, book: PartitionBook, num_own: int) -> dict[int, slice]:
    ends = (np.searchsorted(ghosts, book.bounds) + num_own).tolist()
    return {i: slice(ends[i], ends[i + 1]) for i in range(book.num_intervals) if ends[i] < ends[i + 1]}


def _sends(reverse: Local, rows: slice, owner_of_reader: npt.NDArray[np.int32], server: int) -> dict[int, Ints]:
    """Which rows of an own interval each peer reads. A peer holds a row once, however many of its vertices read it."""
    indptr = reverse.indptr[rows.start : rows.stop + 1]
    owners = owner_of_reader[reverse.columns[indptr[0] : indptr[-1]]]
    elsewhere = np.flatnonzero(owners != server)
    owners = owners[elsewhere]
    positions = np.searchsorted(indptr, elsewhere + indptr[0], side="right") - 1
    sends: dict[int, Ints] = {}
    for peer in np.unique(owners).tolist():
        held = np.zeros(rows.stop - rows.start, np.bool_)
        held[positions[owners == peer]] = True
        sends[peer] = np.flatnonzero(held)
    return sends


def _feeds(read: Local, rows: slice, interval_of_row: Ints, num_intervals: int) -> tuple[int, ...]:
    is_read = np.zeros(num_intervals, np.bool_)
    is_read[interval_of_row[read.columns[read.indptr[rows.start] : read.indptr[rows.stop]]]] = True
    return tuple(np.flatnonzero(is_read).tolist())

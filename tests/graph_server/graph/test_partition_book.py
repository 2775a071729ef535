"""Who owns what, with empty intervals at both ends and between."""

import numpy as np

from graph_server.graph.partition_book import PartitionBook

BOOK = PartitionBook(np.array([0, 0, 3, 3, 3, 5, 5]), np.array([2, 0, 1, 1, 2, 0], np.int32), 4)


def test_an_empty_interval_holds_no_id():
    assert BOOK.interval_of(np.arange(5)).tolist() == [1, 1, 1, 4, 4]
    assert BOOK.owner_of(np.arange(5)).tolist() == [0, 0, 0, 2, 2]


def test_ids_may_come_in_any_order_and_number():
    assert BOOK.owner_of(np.array([4, 0, 4], np.int32)).tolist() == [2, 0, 2]
    assert BOOK.owner_of(np.zeros(0, np.int64)).tolist() == []


def test_intervals_of_a_server():
    assert [BOOK.own_intervals(server) for server in range(4)] == [(1, 5), (2, 3), (0, 4), ()]


def test_rows_of_an_interval():
    assert [list(BOOK.rows(interval)) for interval in range(6)] == [[], [0, 1, 2], [], [], [3, 4], []]
    assert (BOOK.num_nodes, BOOK.num_intervals) == (5, 6)

"""Columns that grow are what was added to them, and take no room that nothing was written to."""

import numpy as np
import pytest

from graph_server.ingest.growing_column import GrowingColumn


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_what_was_added_in_its_order(dtype: type):
    column, given = GrowingColumn(dtype), []
    for number, length in enumerate((0, 3, 1023, 1, 5000, 0, 40_000)):
        given.append(np.arange(length, dtype=dtype) + number)
        column.add(given[-1])
    taken = column.taken()
    assert np.array_equal(taken, np.concatenate(given))
    assert taken.dtype == dtype
    assert taken.nbytes == len(taken) * 8


def test_nothing_was_added():
    assert GrowingColumn(np.int64).taken().tolist() == []

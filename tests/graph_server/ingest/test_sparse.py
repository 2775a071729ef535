"""Pieces of sparse matrices that do not fit together are refused before anything walks along them."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from common.errors import DatasetError
from graph_server.ingest.sparse import as_dense, csr_of


def test_a_matrix_comes_back_as_it_is_stored():
    matrix = csr_of(np.array([1.0, 0.0, 2.0]), np.array([1, 0, 0]), np.array([0, 2, 3]), np.array([2, 2]))
    assert matrix.indices.tolist() == [1, 0, 0]
    assert as_dense(matrix, "labels", Path("x.npz")).tolist() == [[0, 1], [2, 0]]


@pytest.mark.parametrize("indptr", [[0, 3, 2], [0, 4, 0], [0, -1, 3], [1, 2, 3], [0, 1, 4]])
def test_rows_that_end_before_they_begin_are_refused(indptr: list[int]):
    with pytest.raises(ValueError, match="ind"):
        csr_of(np.ones(3), np.array([0, 1, 0]), np.array(indptr), (2, 2))


def test_entries_are_numbers():
    with pytest.raises(TypeError, match=r"entries have dtype \|V8"):
        csr_of(np.zeros(3, "V8"), np.array([0, 1, 0]), np.array([0, 2, 3]), (2, 2))


def test_what_has_no_room_is_not_made_dense():
    wide = scipy.sparse.csr_matrix((4, 2**40), dtype=np.float64)
    with pytest.raises(DatasetError, match="labels of 4 x 1099511627776 need 35,184,372,088,832 bytes"):
        as_dense(wide, "labels", Path("x.npz"))

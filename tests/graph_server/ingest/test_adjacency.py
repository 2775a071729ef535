"""Saved matrices: right edges, or an error that names what is wrong."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from graph_server.ingest.adjacency import adjacency

FILE = Path("adj.npz")
CSR = {"data": np.ones(2), "indices": np.array([1, 0]), "indptr": np.array([0, 1, 2]), "shape": np.array([2, 2])}
COO = {"data": np.ones(2), "row": np.array([0, 1]), "col": np.array([1, 0]), "shape": np.array([2, 2])}


@pytest.mark.parametrize("arrays", [CSR, COO, CSR | {"format": np.array("csr")}])
def test_rows_are_sources(arrays: dict):
    found = adjacency(arrays, FILE)
    assert (found.sources.tolist(), found.targets.tolist(), found.num_nodes) == ([0, 1], [1, 0], 2)
    assert found.notes == ()


def test_duplicates_and_stored_zeros_are_kept_and_weights_are_reported():
    found = adjacency(
        CSR | {"indices": np.array([1, 1]), "indptr": np.array([0, 2, 2]), "data": np.array([0, 2.5])}, FILE
    )
    assert (found.sources.tolist(), found.targets.tolist()) == ([0, 0], [1, 1])
    assert found.notes == ("adj.npz: edges have weights from 0.0 to 2.5: reported and not used",)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        (CSR | {"shape": np.array([2, 3])}, "is a matrix of 2 x 3"),
        (CSR | {"shape": np.array([2])}, "needed: two whole numbers"),
        (CSR | {"indptr": np.array([0, 2, 1])}, "indptr does not cut 2 indices into 2 rows"),
        (CSR | {"indptr": np.array([0, 1, 9])}, "indptr does not cut"),
        (CSR | {"indices": np.array([1, 2])}, "edge 1: vertex 2 does not exist; vertices are 0 .. 1"),
        (CSR | {"indices": np.array([1.0, 0.0])}, "indices is float64"),
        (COO | {"col": np.array([1])}, "row has 2 entries, col 1"),
        (COO | {"row": np.array([-1, 0])}, "edge 0: vertex -1 does not exist"),
        ({"shape": np.array([2, 2]), "indices": np.zeros(0, int)}, "indptr is missing"),
    ],
)
def test_what_does_not_fit_is_named(arrays: dict, reason: str):
    with pytest.raises(DatasetError, match=reason):
        adjacency(arrays, FILE)

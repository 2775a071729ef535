"""From ids to rows."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from graph_server.ingest.memory import check_num_nodes
from graph_server.ingest.node_index import NodeIndex, unique_index


@pytest.mark.parametrize(
    ("node_ids", "ids", "rows"),
    [
        (np.arange(3), np.array([2, 3, -1, 0]), [2, -1, -1, 0]),
        (np.arange(3), np.array([2, 0]), [2, 0]),
        (np.array([30, 7, 2**62]), np.array([7, 8, 2**62]), [1, -1, 2]),
        (np.array(["b", "a"]), np.array(["a", "b", "c"]), [1, 0, -1]),
        (np.array(["1", "2"]), np.array([1, 2]), [-1, -1]),
        (np.array([5, 7]), np.array(["7", "x", "5", "07", "٧", "7.0"]), [1, -1, 0, -1, -1, -1]),
    ],
)
def test_rows_of_ids(node_ids: np.ndarray, ids: np.ndarray, rows: list):
    assert NodeIndex(node_ids).rows(ids).tolist() == rows


@pytest.mark.parametrize(("unit", "place"), [("line", "nodes:9: "), ("row", "nodes: row 9: ")])
def test_an_id_twice_is_named_where_it_stands(unit: str, place: str):
    with pytest.raises(DatasetError, match=f"{place}vertex 5 stands on {unit} 7 already"):
        unique_index(np.array([5, 6, 5]), np.array([7, 8, 9]), Path("nodes"), unit=unit)


@pytest.mark.parametrize("number", [0, -3, 2**50])
def test_a_number_of_vertices_that_cannot_be(number: int):
    with pytest.raises(DatasetError, match=f"graph announces {number} vertices"):
        check_num_nodes(number, "graph")
    check_num_nodes(1, "graph")


def test_among_texts_numbers_are_found_negative_ones_too():
    index = NodeIndex(np.array([-5, 7]))
    assert index.rows(np.array(["-5", "7", "x", "--5", "5-", "-", "07"])).tolist() == [0, 1, -1, -1, -1, -1, -1]

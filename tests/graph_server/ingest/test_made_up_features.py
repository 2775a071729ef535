"""Features for graphs that have none."""

import numpy as np
import pytest

from common.errors import DatasetError
from graph_server.ingest.made_up_features import MOST_ONE_HOT
from tests.graph_server.datasets.folders import applied, raw_graph

STAR = {"sources": np.array([1, 2, 3]), "targets": np.array([0, 0, 0]), "features": None}


def test_the_degree_is_counted_after_the_edge_policies():
    raw = raw_graph(**STAR)
    as_they_stand = applied(raw, features="degree", normalize_features="none", directed=True)
    assert as_they_stand.features.tolist() == [[3], [0], [0], [0]]
    both_ways = applied(raw, features="degree", normalize_features="none", directed=False)
    assert both_ways.features.tolist() == [[3], [1], [1], [1]]


def test_degrees_are_scaled_unless_told_otherwise():
    dataset = applied(raw_graph(**STAR, usual_normalization="row"), features="degree", directed=False)
    assert dataset.report["normalize_features"] == "standard"
    assert "features: the in-degree of each vertex, one column" in dataset.report["notes"]
    with pytest.raises(DatasetError, match="features: degree with normalize_features: row"):
        applied(raw_graph(**STAR), features="degree", directed=False, normalize_features="row")


def test_one_hot_is_a_column_for_each_vertex():
    dataset = applied(raw_graph(**STAR), features="one_hot", directed=True)
    assert dataset.features.tolist() == np.eye(4).tolist()


def test_features_of_the_file_that_are_not_used_are_noted():
    assert "the file's 2 features are not used" in applied(raw_graph(), features="one_hot").report["notes"]


def test_one_hot_is_refused_for_a_large_graph():
    num_nodes = MOST_ONE_HOT + 1
    raw = raw_graph(node_ids=np.arange(num_nodes), features=None, labels=np.arange(num_nodes) % 2, undirected=True)
    with pytest.raises(DatasetError, match="features: one_hot for 20001 vertices, at most 20000") as error:
        applied(raw, features="one_hot")
    assert "1.6 GB" in error.value.why
    assert error.value.fix == "set dataset.features: degree"

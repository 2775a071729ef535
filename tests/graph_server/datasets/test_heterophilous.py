"""Archives with ten splits."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import heterophilous
from tests.graph_server.datasets.folders import load


def read(file: Path, **options):
    return heterophilous.read(file, DatasetSpec(path=str(file), **options))


def write(folder: Path, name: str = "ring.npz", **changes: np.ndarray) -> Path:
    with np.load(heterophilous.example(folder)) as arrays:
        parts = dict(arrays) | changes
    np.savez(folder / name, **parts)
    return folder / name


def test_pairs_are_stored_once_and_go_both_ways(tmp_path: Path):
    dataset = load(heterophilous.example(tmp_path))
    assert (dataset.num_nodes, dataset.report["edges_raw"], dataset.num_edges) == (4, 4, 8)
    assert not dataset.directed


@pytest.mark.parametrize(("name", "undirected"), [("squirrel_directed.npz", False), ("undirected.npz", True)])
def test_a_name_may_say_that_edges_are_directed(tmp_path: Path, name: str, undirected: bool):
    assert read(write(tmp_path, name)).undirected is undirected


def test_a_split_is_picked(tmp_path: Path):
    file = heterophilous.example(tmp_path)
    assert read(file, split_index=1).masks["train"].tolist() == [False, False, True, True]
    assert "split 1 of 2" in read(file, split_index=1).notes
    with pytest.raises(DatasetError, match="split_index = 2, but .*train_masks holds 2 splits"):
        read(file, split_index=2)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"edges": np.array([[0, 4], [1, 2]])}, "names 1 times a vertex that does not exist: edge 0: 4"),
        ({"edges": np.zeros((2, 3), int)}, r"do not fit together: .*'edges': \(2, 3\)"),
        ({"node_features": np.zeros((3, 2))}, "do not fit together"),
        ({"train_masks": np.ones((2, 3), bool)}, "train_masks cannot be read: shape"),
        ({"node_labels": np.array([{}, 1, 2, 3], dtype=object)}, "node_labels are Python objects"),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path: Path, changes: dict, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write(tmp_path, **changes))

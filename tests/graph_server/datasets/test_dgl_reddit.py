"""Two archives in one folder."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import dgl_reddit
from tests.graph_server.datasets.folders import load


def read(folder: Path):
    return dgl_reddit.read(folder, DatasetSpec(path=str(folder)))


def change(folder: Path, **arrays: np.ndarray) -> Path:
    dgl_reddit.example(folder)
    with np.load(folder / "reddit_data.npz") as old:
        parts = dict(old) | arrays
    np.savez(folder / "reddit_data.npz", **parts)
    return folder


def test_the_two_archives(tmp_path: Path):
    raw = read(dgl_reddit.example(tmp_path))
    assert raw.node_ids.tolist() == [10, 11, 12, 13]
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 0])
    assert [np.flatnonzero(raw.masks[name]).tolist() for name in ("train", "valid", "test")] == [[0, 1], [2], [3]]
    assert load(tmp_path, directed=True).features.dtype == np.float32


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_any_form_of_the_matrix(tmp_path: Path, kind: str):
    dgl_reddit.example(tmp_path)
    matrix = scipy.sparse.coo_matrix((np.ones(3), ([0, 1, 3], [2, 2, 0])), shape=(4, 4)).asformat(kind)
    scipy.sparse.save_npz(tmp_path / "reddit_graph.npz", matrix)
    raw = read(tmp_path)
    assert set(zip(raw.sources.tolist(), raw.targets.tolist(), strict=True)) == {(0, 2), (1, 2), (3, 0)}


def test_a_missing_or_second_archive_of_edges_is_named(tmp_path: Path):
    dgl_reddit.example(tmp_path)
    (tmp_path / "reddit_self_loop_graph.npz").write_bytes((tmp_path / "reddit_graph.npz").read_bytes())
    with pytest.raises(DatasetError, match="holds 1 archives of vertices and 2 of edges"):
        read(tmp_path)
    for file in tmp_path.glob("*_graph.npz"):
        file.unlink()
    with pytest.raises(DatasetError, match="1 archives of vertices and 0 of edges") as error:
        load(tmp_path)
    assert error.value.fix == "fetch the missing one"


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"node_types": np.array([1, 2, 3, 9])}, "node_types holds 9; known: 1 train"),
        ({"label": np.zeros(3)}, r"label: \(3,\); reddit_graph\.npz has 4 vertices"),
        ({"feature": np.array([{}, 1, 2, 3], dtype=object)}, "feature: no numbers"),
    ],
)
def test_arrays_that_do_not_fit_are_named(tmp_path: Path, arrays: dict, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(change(tmp_path, **arrays))

"""Plain arrays, in an archive or a folder."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import arrays
from tests.graph_server.datasets.folders import load

ROWS = np.arange(4)
RING = np.stack([ROWS, (ROWS + 1) % 4])


def read(path: Path, **options):
    return arrays.read(path, DatasetSpec(path=str(path), **options))


def write(folder: Path, **changes: object) -> Path:
    parts = {"edge_index": RING, "x": np.eye(4), "y": ROWS % 2} | changes
    np.savez(folder / "graph.npz", **{name: array for name, array in parts.items() if array is not None})
    return folder / "graph.npz"


@pytest.mark.parametrize(
    "edges",
    [
        {"edge_index": RING},
        {"edge_index": RING.T},
        {"edges": np.asfortranarray(RING.T)},
        {"edge_index": RING.astype(np.float64)},
        {"source": RING[0], "target": RING[1].astype(np.uint8)},
        {"row": RING[0], "col": RING[1]},
    ],
)
def test_edges_in_any_dress(tmp_path: Path, edges: dict):
    raw = read(write(tmp_path, **({"edge_index": None} | edges)))
    assert (raw.sources.tolist(), raw.targets.tolist()) == (RING[0].tolist(), RING[1].tolist())
    assert raw.sources.dtype == raw.targets.dtype == np.int64


def test_a_folder_of_arrays(tmp_path: Path):
    for name, array in {"edge_index": RING, "x": np.eye(4), "y": ROWS % 2, "train_idx": np.array([2])}.items():
        np.save(tmp_path / f"{name}.npy", array)
    dataset = load(tmp_path, directed=True)
    assert (dataset.format, dataset.num_nodes, dataset.masks.tolist()) == ("arrays", 4, [0, 0, 1, 0])


def test_a_matrix_saved_by_scipy_is_a_graph_without_features(tmp_path: Path):
    matrix = scipy.sparse.csr_matrix((np.array([1.0, 0.5]), ([0, 3], [1, 2])), shape=(5, 5))
    scipy.sparse.save_npz(tmp_path / "adj.npz", matrix)
    raw = read(tmp_path / "adj.npz")
    assert (raw.num_nodes, raw.sources.tolist(), raw.targets.tolist()) == (5, [0, 3], [1, 2])
    assert "edges have weights from 0.5 to 1.0" in raw.notes[0]
    with pytest.raises(DatasetError, match="has no labels for its 5 vertices") as error:
        load(tmp_path / "adj.npz", directed=True)
    assert "no array is named y, labels" in error.value.why


def test_two_edges_of_shape_2_2(tmp_path: Path):
    raw = read(write(tmp_path, edge_index=np.array([[0, 1], [2, 3]])))
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1], [2, 3])
    with pytest.raises(DatasetError, match="two edges as rows or as columns"):
        read(write(tmp_path, edge_index=None, edges=np.array([[0, 1], [2, 3]])))


@pytest.mark.parametrize("known", [{"x": None}, {"y": None}, {"x": None, "y": None, "num_nodes": np.array(4)}])
def test_the_number_of_vertices_is_told(tmp_path: Path, known: dict):
    raw = read(write(tmp_path, edge_index=RING[:, :1], **known))
    assert raw.num_nodes == 4
    assert not any("largest end" in note for note in raw.notes)


def test_edges_alone_say_that_the_number_is_the_largest_end(tmp_path: Path):
    raw = read(write(tmp_path, x=None, y=None, edge_index=np.array([[7, 1, 2], [2, 3, 0]])))
    assert raw.num_nodes == 8
    assert "no array tells the number of vertices: the largest end + 1 = 8" in raw.notes


def test_names_are_for_the_output(tmp_path: Path):
    assert read(write(tmp_path, node_ids=np.array(["a", "b", "c", "d"]))).node_ids.tolist() == ["a", "b", "c", "d"]
    assert "row numbers serve as ids" in read(write(tmp_path, node_ids=ROWS // 2)).notes[-1]


def test_masks_as_columns_and_what_is_not_used(tmp_path: Path):
    file = write(tmp_path, train_mask=np.eye(4)[:, :2], edge_attr=np.ones((4, 3)), year=ROWS)
    raw = read(file, split_index=1)
    assert raw.masks["train"].tolist() == [False, True, False, False]
    assert "not used: edge_attr, year" in raw.notes


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"edge_index": RING + 1}, r"names 2 times .*: edge 2: 4; edge 3: 4(?s:.*)the ids look 1-based \(1 .. 4\)"),
        ({"edge_index": RING - 1}, "names 2 times a vertex that does not exist: edge 0: -1; edge 3: -1"),
        ({"edge_index": RING.astype(np.float32) + 0.5}, "is no exact vertex id"),
        ({"edge_index": np.zeros((3, 3))}, r"edges of shape \(3, 3\)"),
        ({"x": np.eye(3)}, r"y has shape \(4,\) for 3 vertices"),
        ({"num_nodes": np.array([4, 4])}, "needed: one whole number"),
        ({"features": np.eye(4)}, "the arrays x and features are both there"),
        ({"train_idx": np.array([9])}, "train lists 1 rows that do not exist: 9"),
        ({"train_idx": np.array([0.5])}, "dtype float64; needed: whole numbers"),
        ({"edge_index": np.array([[0, {}], [1, 2]], dtype=object)}, "its edges are Python objects"),
        ({"edge_index": None, "source": ROWS, "target": ROWS[:2]}, r"sources have shape \(4,\), targets \(2,\)"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, changes: dict, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write(tmp_path, **changes))

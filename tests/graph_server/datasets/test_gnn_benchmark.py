"""gnn-benchmark archives, and our optional additions to them."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import gnn_benchmark
from tests.graph_server.datasets.folders import csr_pieces, load, write_npz


def read(file: Path, **options):
    return gnn_benchmark.read(file, DatasetSpec(path=str(file), **options))


def test_the_arrays_are_read_as_they_stand(tmp_path: Path):
    raw = read(write_npz(tmp_path / "path.npz"))
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1], [1, 2])
    assert raw.labels.tolist() == [0, 1, 1]
    assert raw.features.tolist() == [[1, 1], [0, 2], [4, 0]]
    assert raw.masks is None
    assert raw.undirected is None


def test_without_a_word_on_direction_the_user_is_asked(tmp_path: Path):
    file = write_npz(tmp_path / "path.npz")
    with pytest.raises(DatasetError, match=r"0\.0% of them have their reverse") as error:
        load(file)
    assert "dataset.directed: false" in error.value.fix
    assert load(file, directed=False).num_edges == 4
    assert load(file, directed=True).num_edges == 2


def test_undirected_in_the_file_answers(tmp_path: Path):
    dataset = load(write_npz(tmp_path / "path.npz", undirected=np.array(True)))
    assert not dataset.directed
    assert dataset.report["reverse_edges_added"] == 2
    assert load(write_npz(tmp_path / "path.npz", undirected=np.array(False))).directed


def test_undirected_is_one_bool(tmp_path: Path):
    with pytest.raises(DatasetError, match="needed: one bool"):
        read(write_npz(tmp_path / "path.npz", undirected=np.array("False")))


def test_sparse_features_and_one_hot_labels(tmp_path: Path):
    features = scipy.sparse.csr_matrix(np.array([[0, 2.0], [3, 0], [0, 0]], dtype=np.float32))
    one_hot = scipy.sparse.csr_matrix(np.array([[0, 1], [1, 0], [0, 1]]))
    changes = {**csr_pieces("attr", features), **csr_pieces("labels", one_hot), "attr_matrix": None, "labels": None}
    dataset = load(write_npz(tmp_path / "sparse.npz", **changes), directed=True)
    assert dataset.features.tolist() == [[0, 1], [1, 0], [0, 0]]
    assert dataset.labels.tolist() == [1, 0, 1]


def test_names_are_ids_when_they_tell_vertices_apart(tmp_path: Path):
    names = np.array(["a", "b", "c"])
    assert read(write_npz(tmp_path / "a.npz", node_names=names)).node_ids.tolist() == ["a", "b", "c"]
    raw = read(write_npz(tmp_path / "b.npz", node_names=np.array(["a", "b", "b"])))
    assert raw.node_ids.tolist() == [0, 1, 2]
    assert "row numbers serve as ids" in raw.notes[0]


def test_object_arrays_are_skipped_and_never_unpickled(tmp_path: Path):
    raw = read(write_npz(tmp_path / "a.npz", node_names=np.array([["a"], {}, 1], dtype=object)))
    assert raw.node_ids.tolist() == [0, 1, 2]
    assert raw.notes == ("node_names holds Python objects: skipped, never unpickled",)


def test_an_object_array_that_is_needed_is_an_error(tmp_path: Path):
    file = write_npz(tmp_path / "a.npz", attr_matrix=np.array([[1], [{}], [2]], dtype=object))
    with pytest.raises(DatasetError, match="has no features"):
        load(file, directed=True)


def test_masks_and_a_column_of_2d_masks(tmp_path: Path):
    eye = np.eye(3, dtype=bool)
    file = write_npz(tmp_path / "a.npz", train_mask=eye, valid_mask=eye[[1, 2, 0]], test_mask=eye[[2, 0, 1]])
    first, second = (read(file, split_index=index).masks for index in (0, 1))
    assert first["train"].tolist() == [True, False, False]
    assert second["train"].tolist() == [False, True, False]
    with pytest.raises(DatasetError, match="split_index = 3, but .* holds 3 splits"):
        read(file, split_index=3)


def test_a_mask_of_the_wrong_length_is_refused(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"train_mask cannot be read: shape \(2,\)"):
        read(write_npz(tmp_path / "a.npz", train_mask=np.array([True, False])))


@pytest.mark.parametrize(
    "changes",
    [
        {"adj_indices": np.array([1, 9])},
        {"adj_indptr": np.array([0, 5, 1, 2])},
        {"adj_shape": np.array([3, 4])},
        {"labels": np.zeros(5, np.int64)},
        {"attr_matrix": np.zeros((2, 2))},
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, np.ndarray]):
    with pytest.raises(DatasetError, match="cannot be read"):
        read(write_npz(tmp_path / "a.npz", **changes))


def test_a_truncated_archive_is_refused(tmp_path: Path):
    file = write_npz(tmp_path / "a.npz")
    content = bytearray(file.read_bytes())
    middle = content.find(b"attr_matrix") + 160
    content[middle : middle + 8] = b"\xff" * 8
    file.write_bytes(content)
    with pytest.raises(DatasetError, match="cannot be read"):
        read(file)


def test_weights_are_said_to_be_ignored(tmp_path: Path):
    raw = read(write_npz(tmp_path / "a.npz", adj_data=np.array([0.5, 1.0])))
    assert "edge weights are ignored" in raw.notes[0]


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "undirected", "width", "classes"),
    [("cora", 2708, 5429, 5278, 1433, 7), ("citeseer", 3312, 4715, 4536, 3703, 6)],
)
def test_the_original_files(
    real_data: Path, name: str, nodes: int, edges: int, undirected: int, width: int, classes: int
):
    dataset = load(real_data / "gnnbench_npz" / f"{name}.npz", directed=False)
    assert (dataset.num_nodes, dataset.report["edges_raw"], dataset.num_classes) == (nodes, edges, classes)
    assert (dataset.num_edges - dataset.report["self_loops"]) // 2 == undirected
    assert dataset.features.shape == (nodes, width)
    assert dataset.node_ids.dtype.kind == "U"


def test_zero_in_degree_is_counted(real_data: Path):
    assert load(real_data / "gnnbench_npz" / "cora.npz", directed=True).report["zero_in_degree"] == 486


def test_names_that_are_negative_numbers_are_ids_for_who_asks(tmp_path: Path):
    file = write_npz(tmp_path / "a.npz", node_names=np.array([-3, 0, 9]))
    assert read(file).node_ids.tolist() == [0, 1, 2]
    assert "dataset.negative_ids: true takes them" in read(file).notes[-1]
    assert read(file, negative_ids=True).node_ids.tolist() == [-3, 0, 9]

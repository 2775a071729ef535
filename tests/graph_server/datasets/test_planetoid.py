"""The public splits, read as the files hold them."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import planetoid
from graph_server.ingest.dataset import reader_defaults
from tests.graph_server.datasets.folders import load, write_planetoid


def read(path: Path):
    return planetoid.read(path, DatasetSpec(path=str(path)))


def test_test_index_is_not_sorted_and_its_gap_is_filled(tmp_path: Path):
    raw = read(write_planetoid(tmp_path))
    assert raw.num_nodes == 6
    assert raw.features.toarray().tolist() == [[1, 0], [0, 1], [1, 1], [3, 1], [0, 0], [5, 1]]
    assert raw.labels.tolist() == [0, 1, 0, 1, -1, 1]
    assert {name: np.flatnonzero(mask).tolist() for name, mask in raw.masks.items()} == {
        "train": [0, 1],
        "valid": [2],
        "test": [3, 5],
    }
    assert raw.notes == ("vertices 4 are missing from test.index: kept, no features, no label",)


def test_neighbour_lists_are_sets_and_the_missing_reverse_is_added_and_counted(tmp_path: Path):
    dataset = load(write_planetoid(tmp_path))
    assert not dataset.directed
    assert dataset.report["edges_raw"] == 9
    assert dataset.report["duplicate_edges_removed"] == 2
    assert dataset.report["reverse_edges_added"] == 1
    pairs = set(zip(dataset.sources.tolist(), dataset.targets.tolist(), strict=True))
    assert pairs == {(0, 1), (1, 0), (0, 2), (2, 0), (2, 3), (3, 2), (5, 0), (0, 5)}
    assert dataset.report["isolated"] == 1


def test_one_of_the_files_names_the_dataset(tmp_path: Path):
    write_planetoid(tmp_path, name="a")
    write_planetoid(tmp_path, name="b")
    assert load(tmp_path / "ind.b.tx").name == "b"
    with pytest.raises(DatasetError, match="holds 2 Planetoid datasets: a, b"):
        load(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path):
    write_planetoid(tmp_path)
    (tmp_path / "ind.tiny.ty").unlink()
    with pytest.raises(DatasetError, match=r"lacks ind\.tiny\.ty"):
        load(tmp_path)


@pytest.mark.parametrize("content", ["5\n3\n4\n", "5\n5\n", "5\n2\n", ""])
def test_parts_that_do_not_fit_together_are_refused(tmp_path: Path, content: str):
    write_planetoid(tmp_path)
    (tmp_path / "ind.tiny.test.index").write_text(content)
    with pytest.raises(DatasetError, match="do not fit together"):
        load(tmp_path)


def test_a_test_id_that_is_no_number_is_named(tmp_path: Path):
    write_planetoid(tmp_path)
    (tmp_path / "ind.tiny.test.index").write_text("5\nthree\n")
    with pytest.raises(DatasetError, match=r"test\.index:2 cannot be read: 'three' is not a vertex id"):
        load(tmp_path)


def test_a_part_of_the_wrong_kind_is_refused(tmp_path: Path):
    write_planetoid(tmp_path)
    (tmp_path / "ind.tiny.ty").write_bytes((tmp_path / "ind.tiny.graph").read_bytes())
    with pytest.raises(DatasetError, match="cannot be read"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "nodes", "entries", "undirected", "width", "classes", "train"),
    [
        ("cora", 2708, 10858, 5278, 1433, 7, 140),
        ("citeseer", 3327, 9464, 4552, 3703, 6, 120),
        ("pubmed", 19717, 88676, 44324, 500, 3, 60),
    ],
)
def test_the_original_files(
    real_data: Path, name: str, nodes: int, entries: int, undirected: int, width: int, classes: int, train: int
):
    dataset = load(real_data / f"planetoid_{name}")
    report = dataset.report
    assert (dataset.num_nodes, report["edges_raw"], dataset.num_classes) == (nodes, entries, classes)
    assert (dataset.num_edges - report["self_loops"]) // 2 == undirected
    assert dataset.features.shape == (nodes, width)
    assert (report["train"], report["valid"], report["test"]) == (train, 500, 1000)
    assert report["reverse_edges_added"] == 0
    assert report["normalize_features"] == "row"
    assert np.allclose(dataset.features.sum(axis=1)[dataset.labels >= 0][:100], 1)


def test_citeseer_gaps(real_data: Path):
    dataset = load(real_data / "planetoid_citeseer" / "ind.citeseer.graph")
    gaps = np.flatnonzero(dataset.labels < 0)
    assert len(gaps) == 15
    assert gaps[0] == 2407
    assert not dataset.features[gaps].any()
    assert not dataset.masks[gaps].any()
    assert dataset.report["isolated"] == 48
    assert any("2407" in note for note in dataset.report["notes"])


def test_defaults_are_known_without_reading_the_data(tmp_path: Path):
    (tmp_path / "ind.any.graph").write_bytes(b"no pickle")
    defaults = reader_defaults(DatasetSpec(path=str(tmp_path)), tmp_path)
    assert defaults["gcn"]["model.hidden_size"] == 16
    assert defaults["gat"]["training.num_epochs"] == 300
    assert set(defaults) == {"gcn", "gat", "graphsage", "gin"}


@pytest.mark.parametrize("number", ["4000000", "9" * 18, "9" * 19])
def test_a_vertex_far_beyond_all_rows_is_damage(tmp_path: Path, number: str):
    folder = write_planetoid(tmp_path)
    (folder / "ind.tiny.test.index").write_text(f"5\n{number}\n")
    with pytest.raises(DatasetError, match="cannot be read: .*(has the number|is not a vertex id)"):
        planetoid.read(folder, DatasetSpec(path=str(folder)))

"""geom-gcn text, and the split files beside it."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import geom_gcn, heterophilous
from tests.graph_server.datasets.folders import load

HEADER = "node_id\tfeature\tlabel\n"


def read(folder: Path, **options):
    return geom_gcn.read(folder, DatasetSpec(path=str(folder), **options))


def write(folder: Path, vertices: str = "", edges: str = "") -> Path:
    place = geom_gcn.example(folder)
    if vertices:
        (place / geom_gcn.VERTICES).write_text(HEADER + vertices)
    if edges:
        (place / geom_gcn.EDGES).write_text("node_id\tnode_id\n" + edges)
    return place


def test_the_two_files(tmp_path: Path):
    raw = read(geom_gcn.example(tmp_path))
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 0])
    assert raw.features.tolist() == [[1, 0], [0, 1], [1, 1], [2, 0]]
    assert raw.labels.tolist() == [0, 1, 0, 1]
    assert raw.masks["valid"].tolist() == [False, False, True, False]
    assert raw.edges_are_a_set
    assert raw.undirected is None


def test_masks_follow_the_ids_and_not_the_lines(tmp_path: Path):
    raw = read(write(tmp_path, "3\t2,0\t1\n0\t1,0\t0\n2\t1,1\t0\n1\t0,1\t1\n"))
    assert raw.node_ids.tolist() == [3, 0, 2, 1]
    assert raw.masks["test"].tolist() == [True, False, False, False]


def test_lists_of_which_features_are_1(tmp_path: Path):
    raw = read(write(tmp_path, "0\t1,3\t0\n1\t0\t1\n2\t\t0\n3\t4\t1\n"))
    assert raw.features.toarray().tolist() == [[0, 1, 0, 1, 0], [1, 0, 0, 0, 0], [0] * 5, [0, 0, 0, 0, 1]]
    assert any("lists of which of 5 features are 1" in note for note in raw.notes)


def test_split_files_above_the_folder(tmp_path: Path):
    place = geom_gcn.example(tmp_path)
    (tmp_path / "splits").mkdir()
    (place / "ring_split_0.6_0.2_0.npz").rename(tmp_path / "splits" / "ring_split_0.6_0.2_4.npz")
    assert read(place, split_index=4).masks["train"].tolist() == [True, True, False, False]
    with pytest.raises(DatasetError, match="split_index = 0, but the split files are 4"):
        read(place)


def test_no_split_file_is_noted(tmp_path: Path):
    place = geom_gcn.example(tmp_path)
    (place / "ring_split_0.6_0.2_0.npz").unlink()
    assert read(place).masks is None
    assert any("no split files ring_split_*.npz" in note for note in read(place).notes)


@pytest.mark.parametrize(
    ("vertices", "edges", "reason"),
    [
        ("0\t1,0\n", "", r"label\.txt:2: '0\\t1,0' has 2 fields, not 3"),
        ("0\t1,x\t0\n1\t1,1\t0\n", "0\t1\n", r"label\.txt:2: 'x' is not a number"),
        ("0\t1,0.5\t0\n1\t1\t0\n", "0\t1\n", r"label\.txt:3: '1' has 1 features, not 2"),
        ("0\t1\t0\n0\t1\t0\n", "", r"label\.txt:3: vertex 0 stands on line 2 already"),
        ("", "0\t9\n", r"out1_graph_edges\.txt names 1 times a vertex that does not exist: line 2: 9"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, vertices: str, edges: str, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write(tmp_path, vertices, edges))


def test_the_same_graph_in_two_formats(real_data: Path):
    """Texas lies in both repositories: as text with 325 edges, as an archive with 279 pairs."""
    for split_index in (0, 9):
        text = load(real_data / "geom_gcn" / "texas", directed=False, split_index=split_index)
        archive = load(real_data / "heterophilous_npz" / "texas.npz", split_index=split_index)
        assert np.array_equal(text.features, archive.features)
        assert np.array_equal(text.labels, archive.labels)
        assert np.array_equal(text.masks, archive.masks)
        pairs = [set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)) for graph in (text, archive)]
        assert {edge for edge in pairs[0] if edge[0] != edge[1]} == {edge for edge in pairs[1] if edge[0] != edge[1]}
    assert heterophilous.detect(real_data / "heterophilous_npz" / "texas.npz")

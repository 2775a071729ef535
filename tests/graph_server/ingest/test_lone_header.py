"""A header that nobody recognised does not turn all ids into texts unseen."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import edge_list
from graph_server.ingest.raw_graph import RawGraph

RING = "0 1\n1 2\n2 0\n"


def read(tmp_path: Path, text: str, name: str = "graph.txt", folder: bool = False) -> RawGraph:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    path = tmp_path if folder else tmp_path / name
    return edge_list.read(path, DatasetSpec(path=str(path)))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"person 7\n{RING}", 1),
        (f"# SNAP\n\nperson 7\n{RING}", 3),
        (f"0 friend\n{RING}", 1),
        (f"person 0 weight\n{RING.replace(chr(10), ' 1' + chr(10))}", 1),
        ("person friend\n", 1),
        ("person friend\n# nothing else\n", 1),
    ],
)
def test_a_first_line_that_alone_is_text_is_refused_with_its_line(tmp_path: Path, text: str, line: int):
    with pytest.raises(DatasetError, match=rf"graph\.txt:{line}: .* is the only line with an id that is no") as error:
        read(tmp_path, text)
    assert "it looks like a header" in error.value.why
    assert "source and target" in error.value.fix


def test_what_the_error_advises_gets_past_it(tmp_path: Path):
    as_edge = read(tmp_path, "source target\nperson friend\n")
    assert as_edge.node_ids.tolist() == ["friend", "person"]
    assert read(tmp_path, f"# person 7\n{RING}").node_ids.tolist() == [0, 1, 2]
    assert read(tmp_path, f"source target\n{RING}").num_edges == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"person 7\n{RING}2 person\n", "1 of them are no whole numbers, such as person"),
        (f"{RING}person 7\n", "1 of them are no whole numbers, such as person"),
        ("a b\nb c\n", "3 of them are no whole numbers, such as a"),
    ],
)
def test_texts_that_are_meant_are_noted(tmp_path: Path, text: str, words: str):
    raw = read(tmp_path, text)
    assert raw.node_ids.dtype.kind == "U"
    assert f"ids are texts, because {words}" in raw.notes


def test_words_over_numbers_are_a_header_and_numbers_are_no_texts(tmp_path: Path):
    raw = read(tmp_path, f"person friend\n{RING}")
    assert raw.node_ids.tolist() == [0, 1, 2]
    assert raw.notes == ("graph.txt: line 1 was read as a header: person friend",)


def test_vertices_that_are_listed_may_have_any_ids(tmp_path: Path):
    (tmp_path / "labels.csv").write_text("id,y\nperson,1\n0,0\n1,1\n2,0\n7,1\n")
    assert read(tmp_path, f"person 7\n{RING}", name="edges.txt", folder=True).num_edges == 4


def test_a_part_with_one_edge_is_no_header(tmp_path: Path):
    (tmp_path / "edges").mkdir()
    (tmp_path / "edges" / "part-1.txt").write_text("a b\n")
    assert read(tmp_path, "b c\n", name="edges/part-2.txt", folder=True).num_edges == 2


def test_an_array_has_no_header(tmp_path: Path):
    np.save(tmp_path / "edges.npy", np.array([["x", "1", "2"], ["1", "2", "1"]]))
    path = tmp_path / "edges.npy"
    assert edge_list.read(path, DatasetSpec(path=str(path))).num_edges == 3

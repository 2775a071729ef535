"""LINQS citation text."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import linqs
from tests.graph_server.datasets.folders import load


def read(path: Path, **options):
    return linqs.read(path, DatasetSpec(path=str(path), **options))


def write(folder: Path, content: str = "", cites: str = "") -> Path:
    linqs.example(folder)
    for ending, text in {"content": content, "cites": cites}.items():
        if text:
            (folder / f"ring.{ending}").write_text(text)
    return folder


def test_a_citation_goes_from_the_second_to_the_first(tmp_path: Path):
    raw = read(linqs.example(tmp_path))
    assert raw.node_ids.tolist() == [31, 7, 8, 9]
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 0])
    assert raw.features.tolist() == [[1, 0], [0, 1], [1, 1], [1, 0]]
    assert raw.labels.tolist() == ["Theory", "Agents", "Theory", "Agents"]
    assert raw.edges_are_a_set
    assert raw.undirected is None


def test_either_file_names_the_dataset(tmp_path: Path):
    linqs.example(tmp_path)
    for name in ("content", "cites"):
        (tmp_path / f"texas.{name}").write_bytes((tmp_path / f"ring.{name}").read_bytes())
    assert load(tmp_path / "ring.cites", directed=True).num_edges == 4
    with pytest.raises(DatasetError, match="holds 2 LINQS datasets: ring, texas"):
        load(tmp_path)


def test_text_ids_blanks_and_crlf(tmp_path: Path):
    raw = read(write(tmp_path, "a1 1 0.5 x\r\n007 0 1 y\r\n", "a1 007\r\n"))
    assert raw.node_ids.tolist() == ["a1", "007"]
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([1], [0])
    assert raw.features.tolist() == [[1, 0.5], [0, 1]]


def test_citations_of_papers_that_are_not_there(tmp_path: Path):
    folder = write(tmp_path, cites="7\t31\n99\t7\n")
    with pytest.raises(
        DatasetError, match=r"ring\.cites names 1 times a vertex that does not exist: line 2: 99"
    ) as error:
        read(folder)
    assert "dataset.drop_unknown_edges" in error.value.fix
    assert read(folder, drop_unknown_edges=True).num_edges == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("1\t0\tx\n2\tz\ty\n", r"ring\.content: row 2: .*invalid value 'z'"),
        ("1\t0\tx\n2\t0\t1\ty\n", r"ring\.content: row 2: Expected 3 columns, got 4"),
        ("1\t0\tx\n1\t0\ty\n", r"ring\.content:2: vertex 1 stands on line 1 already"),
        ("1\tx\n", "its first line has 2 fields"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_row(tmp_path: Path, content: str, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write(tmp_path, content))


def test_cora_is_what_the_other_formats_say(real_data: Path):
    dataset, bundled = load(real_data / "linqs_cora", directed=False), load("cora")
    assert (dataset.num_nodes, dataset.report["edges_raw"], dataset.num_edges) == (2708, 5429, 2 * 5278)
    assert np.array_equal(dataset.features, bundled.features)
    assert np.array_equal(dataset.node_ids, bundled.node_ids)
    assert dataset.class_values[0] == "Case_Based"
    assert dataset.report["normalize_features"] == "row"


def test_direction_is_that_of_the_readme(real_data: Path):
    linqs_cora, parquet = read(real_data / "linqs_cora"), load(real_data / "parquet_neo4j" / "cora", directed=True)
    assert set(zip(linqs_cora.sources.tolist(), linqs_cora.targets.tolist(), strict=True)) == set(
        zip(parquet.targets.tolist(), parquet.sources.tolist(), strict=True)
    )

"""`dorylus convert`: Parquet and graph folders, whole or not at all, never over something."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import main
from graph_server.graph.folder_reader import GraphFolder
from tests.graph_server.datasets.folders import load, write_folder
from tests.local_cloud.jobs import MY_GRAPH


def convert(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["convert", *map(str, arguments)], catch_exceptions=False)


def test_cora_by_way_of_parquet_is_cora(tmp_path: Path):
    done = convert("cora", tmp_path / "cora.parquet")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{tmp_path / 'cora.parquet'}: 2,708 vertices, 5,429 edges, ")
    assert sorted(os.listdir(tmp_path / "cora.parquet")) == ["edges.parquet", "nodes.parquet"]
    assert load(tmp_path / "cora.parquet").fingerprint == load("cora").fingerprint


def test_a_graph_folder(tmp_path: Path):
    done = convert(MY_GRAPH, tmp_path / "mine.dorylus", "--directed", "false", "--num-intervals", "3")
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 1)
    folder = GraphFolder.open(tmp_path / "mine.dorylus", verify=True)
    assert (folder.num_intervals, folder.manifest.num_nodes, folder.manifest.num_edges) == (3, 60, 334)
    assert folder.manifest.source_fingerprint == load(MY_GRAPH, directed=False).fingerprint


def test_there_and_back(tmp_path: Path):
    convert(MY_GRAPH, tmp_path / "a.dorylus", "--directed", "false")
    convert(tmp_path / "a.dorylus", tmp_path / "b.parquet")
    convert(tmp_path / "b.parquet", tmp_path / "c.dorylus")
    first, last = (GraphFolder.open(tmp_path / name).manifest for name in ("a.dorylus", "c.dorylus"))
    assert last.cut == first.cut
    ours = {name: entry.sha256 for name, entry in last.files.items()}
    assert ours == {name: entry.sha256 for name, entry in first.files.items()}


def test_an_edge_list_alone_becomes_parquet_and_no_graph_folder(tmp_path: Path):
    (tmp_path / "graph.txt").write_text("a b\nb c\n")
    assert convert(tmp_path / "graph.txt", tmp_path / "graph.parquet").exit_code == 0
    done = convert(tmp_path / "graph.txt", tmp_path / "graph.dorylus", "--directed", "true")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the dataset has no labels for its 3 vertices" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["graph.parquet", "graph.txt"]


@pytest.mark.parametrize("name", ["there.parquet", "there.dorylus"])
def test_nothing_is_replaced(tmp_path: Path, name: str):
    (tmp_path / name).write_text("precious")
    done = convert("cora", tmp_path / name)
    assert done.exit_code == 1
    assert f"{name} is there already" in done.stderr
    assert (tmp_path / name).read_text() == "precious"
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["cora.csv", "cora"])
def test_an_ending_that_says_nothing(tmp_path: Path, name: str):
    done = convert("cora", tmp_path / name)
    assert done.exit_code == 1
    assert "is the name of no format that is written" in done.stderr
    assert "fix: name it cora.parquet for tables, or cora.dorylus for a graph folder" in done.stderr


def test_policies_have_no_place_in_parquet(tmp_path: Path):
    done = convert("cora", tmp_path / "cora.parquet", "--directed", "true", "--method", "hash")
    assert done.exit_code == 1
    assert "cut.method, dataset.directed would change nothing in a .parquet" in done.stderr
    assert not os.listdir(tmp_path)


def test_flags_that_say_how_to_read_do(tmp_path: Path):
    folder = write_folder(tmp_path / "ring", edges_csv="0,1\n1,0\n7,1\n")
    assert convert(folder, tmp_path / "a.parquet").exit_code == 1
    assert convert(folder, tmp_path / "a.parquet", "--drop-unknown-edges").exit_code == 0
    assert load(tmp_path / "a.parquet").num_edges == 2


def test_what_does_not_come_along_is_said(tmp_path: Path):
    done = convert("cora", tmp_path / "cora.parquet")
    assert "note: settings known to work with cora (bundled) do not come along: model.hidden_size: 16" in done.stderr


def test_a_place_that_cannot_be_written_to(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for ending in ("parquet", "dorylus"):
        done = convert("cora", tmp_path / "file" / f"cora.{ending}")
        assert done.exit_code == 1
        assert "cannot be written" in done.stderr

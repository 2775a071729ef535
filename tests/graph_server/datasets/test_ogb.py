"""OGB folders: text and binary, one kind of vertices out of several, and folders that lack files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import ogb
from tests.graph_server.datasets.folders import load


def read(folder: Path, **options):
    return ogb.read(folder, DatasetSpec(path=str(folder), **options))


def write(folder: Path, **tables: str) -> Path:
    """The reader's own example; `raw__node_feat="..."` replaces raw/node-feat.csv.gz, "" removes it."""
    folder.mkdir(exist_ok=True)
    ogb.example(folder)
    for name, content in tables.items():
        write_table(folder / f"{name.replace('__', '/').replace('_', '-')}.csv.gz", content)
    return folder


def write_table(file: Path, content: str) -> None:
    file.unlink(missing_ok=True)
    if content:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content.encode()))


def test_the_tables_are_read_as_they_stand(tmp_path: Path):
    raw = read(write(tmp_path))
    assert (raw.num_nodes, raw.num_edges) == (4, 4)
    assert raw.features.tolist() == [[1, 0], [0, 1], [1, 1], [2, 0]]
    assert raw.features.dtype == np.float32
    assert raw.labels.tolist() == [[0], [1], [0], [1]]
    assert [np.flatnonzero(raw.masks[name]).tolist() for name in ("train", "valid", "test")] == [[0, 1], [2], [3]]
    assert "split: random" in raw.notes


def test_labels_of_many_columns_are_several_labels(tmp_path: Path):
    folder = write(tmp_path, raw__node_label="1,1,0\n0,nan,1\n0,1,1\n1,0,0\n")
    dataset = load(folder, directed=True)
    assert dataset.task == "multi_label"
    expected = [[1, 1, 0], [0, np.nan, 1], [0, 1, 1], [1, 0, 0]]
    assert np.array_equal(dataset.labels, expected, equal_nan=True)


def test_tables_that_a_user_unpacked_and_the_raw_folder_itself(tmp_path: Path):
    folder = write(tmp_path, raw__edge="")
    (folder / "raw" / "edge.csv").write_text("0,1\r\n1,2\r\n2,3\r\n3,0\r\n")
    assert read(folder / "raw").targets.tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize(
    ("name", "undirected"), [("ogbn_products", True), ("ogbn-arxiv", False), ("papers100M", False), ("mine", None)]
)
def test_known_names_say_whether_edges_go_both_ways(tmp_path: Path, name: str, undirected: bool | None):
    assert read(write(tmp_path / name)).undirected is undirected


def test_isolated_vertices_are_counted_by_the_list(tmp_path: Path):
    folder = write(tmp_path, raw__num_node_list="5\n", raw__node_feat="", raw__node_label="0\n1\n0\n1\nnan\n")
    raw = read(folder)
    assert raw.num_nodes == 5
    with pytest.raises(DatasetError, match="has no features for its 5 vertices") as error:
        load(folder, directed=True)
    assert "raw/node-feat.csv.gz" in error.value.why
    assert load(folder, directed=True, features="degree").report["unlabelled"] == 1


def test_files_that_are_missing_are_named(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"lacks raw/edge\.csv\.gz, raw/node-feat\.csv\.gz"):
        read(write(tmp_path / "a", raw__edge="", raw__node_feat=""))
    with pytest.raises(DatasetError, match=r"lacks raw/num-node-list\.csv\.gz"):
        read(write(tmp_path / "b", raw__num_node_list="", raw__node_feat=""))
    with pytest.raises(DatasetError, match=r"lacks valid\.csv\.gz"):
        read(write(tmp_path / "c", split__random__valid=""))
    assert read(write(tmp_path / "d", raw__node_label="")).labels is None


def test_an_absent_split_is_noted(tmp_path: Path):
    folder = write(tmp_path)
    (folder / "split").rename(tmp_path / "elsewhere")
    assert read(folder).masks is None
    assert any("has no split/" in note for note in read(folder).notes)


def test_two_splits_ask(tmp_path: Path):
    with pytest.raises(DatasetError, match="holds 2 splits: random, time"):
        read(write(tmp_path, split__time__train="0\n"))


def test_other_tables_are_named(tmp_path: Path):
    folder = write(tmp_path)
    write_table(folder / "raw" / "node_year.csv.gz", "2017\n" * 4)
    write_table(folder / "raw" / "edge-feat.csv.gz", "1\n" * 4)
    assert "not used: raw/edge-feat.csv.gz, raw/node_year.csv.gz" in read(folder).notes


@pytest.mark.parametrize(
    ("table", "content", "reason"),
    [
        ("raw__edge", "0,1\n1,x\n", r"edge\.csv\.gz: row 2: .*invalid value 'x'"),
        ("raw__edge", "0,1\n1,2,3\n", r"edge\.csv\.gz: row 2: Expected 2 columns, got 3"),
        ("raw__edge", "0,1\n1,\n", r"edge\.csv\.gz: row 2: has an empty cell"),
        ("raw__edge", "0,1,2\n", "3 columns; needed: source and target"),
        ("raw__edge", "0,1\n1,9\n2,3\n3,0\n", r"names 1 times a vertex that does not exist: edge 1: 9"),
        ("raw__edge", "0,1\n1,2\n", "it holds 2 edges, and num-edge-list.csv.gz announces 4"),
        ("raw__node_feat", "1\n2\n3\n", r"node-feat\.csv\.gz cannot be read: it has shape \(3, 1\) for 4 vertices"),
        ("raw__node_feat", "1\n2\n1e39\n4\n", r"row 3: holds 1e\+39, which is beyond float32"),
        ("raw__node_label", "1\n", r"node-label\.csv\.gz cannot be read: it has shape \(1, 1\) for 4 vertices"),
        ("split__random__train", "0\n7\n", "train lists 1 rows that do not exist: 7"),
        ("raw__num_node_list", "2\n2\n", "holds 2 graphs"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, table: str, content: str, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write(tmp_path, **{table: content}))


def test_unknown_vertices_can_be_dropped(tmp_path: Path):
    raw = read(write(tmp_path, raw__edge="0,1\n1,9\n2,3\n3,0\n"), drop_unknown_edges=True)
    assert raw.num_edges == 3


def binary(folder: Path, **changes: object) -> Path:
    arrays = {
        "edge_index": np.array([[0, 1, 2], [1, 2, 0]]),
        "num_nodes_list": np.array([4]),
        "num_edges_list": np.array([3]),
        "node_feat": np.ones((4, 2), np.float16),
        "node_year": np.zeros((4, 1)),
    } | changes
    (folder / "raw").mkdir(parents=True)
    np.savez(folder / "raw" / "data.npz", **{name: array for name, array in arrays.items() if array is not None})
    np.savez(folder / "raw" / "node-label.npz", node_label=np.array([[0.0], [np.nan], [1.0], [np.nan]]))
    return folder


def test_the_binary_form(tmp_path: Path):
    dataset = load(binary(tmp_path), directed=True)
    assert (dataset.num_nodes, dataset.num_edges, dataset.num_classes) == (4, 3, 2)
    assert dataset.labels.tolist() == [0, -1, 1, -1]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"edge_index": None}, "lacks edge_index"),
        ({"edge_index": np.zeros((3, 2), int)}, r"edge_index has shape \(3, 2\)"),
        ({"edge_index": np.array([[0, 4], [1, 0]])}, "names 1 times a vertex that does not exist: edge 1: 4"),
        ({"node_feat": np.ones((3, 2))}, r"it has shape \(3, 2\) for 4 vertices"),
    ],
)
def test_a_binary_form_that_does_not_fit_is_named(tmp_path: Path, changes: dict, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(binary(tmp_path, **changes))


@pytest.fixture
def citations(tmp_path: Path) -> Path:
    """Papers that cite papers, and authors that write them."""
    tables = {
        "raw/triplet-type-list": "author,writes,paper\npaper,cites,paper\n",
        "raw/num-node-dict": "author,paper\n2,3\n",
        "raw/nodetype-has-label": "author,paper\nFalse,True\n",
        "raw/relations/author___writes___paper/edge": "0,0\n1,2\n",
        "raw/relations/paper___cites___paper/edge": "0,1\n1,2\n",
        "raw/relations/paper___cites___paper/num-edge-list": "2\n",
        "raw/node-feat/paper/node-feat": "1\n2\n3\n",
        "raw/node-label/paper/node-label": "0\n1\n0\n",
        "split/time/paper/train": "0\n",
        "split/time/paper/valid": "1\n",
        "split/time/paper/test": "2\n",
    }
    for name, content in tables.items():
        write_table(tmp_path / f"{name}.csv.gz", content)
    return tmp_path


@pytest.mark.parametrize(
    "options", [{}, {"edge_type": "cites"}, {"edge_type": "paper:cites:paper"}, {"node_type": "paper"}]
)
def test_a_homogeneous_part_is_picked(citations: Path, options: dict):
    raw = read(citations, **options)
    assert (raw.num_nodes, raw.sources.tolist(), raw.targets.tolist()) == (3, [0, 1], [1, 2])
    assert (raw.edge_type, raw.node_type) == ("paper:cites:paper", "paper")
    assert raw.masks["test"].tolist() == [False, False, True]
    assert load(citations, directed=True, **options).num_classes == 2


def test_a_part_between_two_kinds_is_refused(citations: Path):
    with pytest.raises(DatasetError, match="holds 2 kinds of edges: author:writes:paper, paper:cites:paper") as error:
        read(citations, edge_type="writes")
    assert error.value.fix == "set dataset.edge_type: paper:cites:paper"


def test_a_type_is_never_ignored(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"dataset\.edge_type: cites, but the file has one kind"):
        load(write(tmp_path), directed=True, edge_type="cites")


def test_real_folders_are_refused_by_what_they_are(real_data: Path):
    with pytest.raises(DatasetError, match=r"ogbg_molesol holds 1128 graphs.*graph-level"):
        read(real_data / "ogb" / "ogbg_molesol")
    with pytest.raises(DatasetError, match=r"lacks raw/edge\.csv\.gz, raw/node-feat\.csv\.gz, split/"):
        read(real_data / "ogb" / "ogbn_arxiv_partial")

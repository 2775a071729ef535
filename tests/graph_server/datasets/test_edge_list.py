"""A folder of plain files: ids of every kind, and errors that say what to add."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import edge_list
from graph_server.ingest.raw_graph import RawGraph
from tests.examples import examples
from tests.graph_server.datasets.folders import FEATURES, RING, load, write_folder


def read(folder: Path, **options):
    return edge_list.read(folder, DatasetSpec(path=str(folder), **options))


def test_rows_are_vertices_without_an_id_column(tmp_path: Path):
    raw = read(write_folder(tmp_path))
    assert raw.node_ids.tolist() == [0, 1, 2, 3]
    assert raw.sources.tolist() == [0, 1, 2, 3, 1, 2, 3, 0]
    assert raw.features.tolist() == [[1, 0], [0, 1], [1, 1], [2, 0]]
    assert raw.labels.tolist() == [0, 1, 0, 1]
    assert raw.masks is None


def test_sparse_ids_are_rows_by_the_id_column(tmp_path: Path):
    folder = write_folder(
        tmp_path,
        edges_csv="900000000000,7\n7,30\n",
        features_csv="id,f\n30,1\n7,2\n900000000000,3\n",
        labels_csv="label,id\nred,7\nblue,30\n",
    )
    raw = read(folder)
    assert raw.node_ids.tolist() == [30, 7, 900000000000]
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([2, 1], [1, 0])
    assert raw.labels.tolist() == ["blue", "red", ""]


def test_text_ids_are_kept_as_written(tmp_path: Path):
    folder = write_folder(
        tmp_path,
        edges_csv="007,7\n7,a b\n",
        features_csv="node_id,f\n007,1\n7,2\na b,3\n",
        labels_csv="id,y\n7,1\n007,0\n",
        train_csv="7\n007\n",
    )
    raw = read(folder)
    assert raw.node_ids.tolist() == ["007", "7", "a b"]
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1], [1, 2])
    assert raw.labels.tolist() == [0, 1, -1]
    assert raw.masks["train"].tolist() == [True, True, False]


def test_whole_numbers_among_text_ids_are_text(tmp_path: Path):
    folder = write_folder(tmp_path, edges_csv="1,2\n", features_csv="id,f\n1,0\n2,0\nx,1\n", labels_csv="0\n1\n0\n")
    assert read(folder).sources.tolist() == [0]


def test_arrays_and_gzip(tmp_path: Path):
    folder = write_folder(
        tmp_path,
        edges_txt_gz=gzip.compress(RING.encode()),
        features_npy=np.eye(4, dtype=np.float16),
        labels_npy=np.array([[0], [1], [-1], [1]]),
        masks_npy=np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]]),
    )
    dataset = load(folder)
    assert dataset.labels.tolist() == [0, 1, -1, 1]
    assert dataset.masks.tolist() == [1, 2, 0, 4]
    assert dataset.features.dtype == np.float32


def test_masks_as_lists_of_ids(tmp_path: Path):
    raw = read(write_folder(tmp_path, train_csv="id\n0\n1\n", val_txt="2\n", test_csv="# none\n3\n"))
    assert {name: np.flatnonzero(mask).tolist() for name, mask in raw.masks.items()} == {
        "train": [0, 1],
        "valid": [2],
        "test": [3],
    }


def test_masks_as_a_split_column(tmp_path: Path):
    folder = write_folder(tmp_path, labels_csv="id,label,split\n3,0,val\n1,1,Train\n0,0,train\n2,1,\n")
    raw = read(folder)
    assert raw.labels.tolist() == [0, 1, 1, 0]
    assert np.flatnonzero(raw.masks["train"]).tolist() == [0, 1]
    assert np.flatnonzero(raw.masks["valid"]).tolist() == [3]


def test_masks_given_twice_are_refused(tmp_path: Path):
    folder = write_folder(tmp_path, train_csv="0\n", labels_csv="label,split\n0,train\n1,test\n0,\n1,\n")
    with pytest.raises(DatasetError, match=r"given more than once: train\.csv, the split column"):
        read(folder)


def test_a_mask_list_that_names_an_unknown_vertex_is_refused(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"train\.csv names 1 times a vertex that does not exist: line 2: 9"):
        read(write_folder(tmp_path, train_csv="0\n9\n"))


def test_unknown_vertices_are_listed_with_their_lines(tmp_path: Path):
    edges = "# two good ones\n0,1\n1,0\n" + "".join(f"0,{number}\n" for number in range(50, 62))
    folder = write_folder(tmp_path, edges_csv=edges)
    with pytest.raises(DatasetError) as error:
        read(folder)
    assert error.value.what.startswith("edges.csv names 12 times a vertex that does not exist: line 4: 50; line 5: 51;")
    assert error.value.what.endswith("line 13: 59; ...")
    assert "vertices are 0 .. 3" in error.value.why
    raw = read(folder, drop_unknown_edges=True)
    assert len(raw.sources) == 2
    assert "12 of 14 edges name a vertex that does not exist: dropped" in raw.notes[-1]


def test_one_based_ids_are_recognised(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"the ids look 1-based \(1 \.\. 4\): subtract 1"):
        read(write_folder(tmp_path, edges_csv="1,2\n2,3\n3,4\n4,1\n"))


@pytest.mark.parametrize("token", ["12.5", "2x", "nan", "1e0"])
def test_an_id_that_is_no_whole_number_is_named_with_its_line(tmp_path: Path, token: str):
    with pytest.raises(DatasetError, match=rf"line 2: {token}"):
        read(write_folder(tmp_path, edges_csv=f"0,1\n1,{token}\n"))


def test_duplicate_vertices_are_refused(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"features\.csv:4: vertex 5 stands on line 2 already"):
        read(write_folder(tmp_path, features_csv="id,f\n5,1\n6,1\n5,2\n"))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("1,0\n0,x\n1,1\n2,0\n", r"features\.csv:2: 'x' is not a number"),
        ("1,0\n0\n1,1\n2,0\n", r"features\.csv:2: '0' has 1 fields, not 2"),
        ("id,a,b\n0,1\n", r"features\.csv:2: '0,1' has 2 fields, not 3"),
        ("", r"features\.csv holds no vertex"),
        ("id,a\n-1,0\n", r"features\.csv:2: the id -1 is negative"),
        ("p,1\nq,2\n", r"features\.csv:1: 'p' is not a number"),
    ],
)
def test_features_that_cannot_be_read_are_named(tmp_path: Path, content: str, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write_folder(tmp_path, features_csv=content))


@pytest.mark.parametrize(
    "content", ["1 0\n0  1\n1 1\n2 0\n", '"1","0"\n0,1\n1,1\n2,0\n', "a\tb\n1\t0\n0\t1\n1\t1\n2\t0\n"]
)
def test_features_in_any_dress(tmp_path: Path, content: str):
    assert read(write_folder(tmp_path, features_csv=content)).features.tolist() == [[1, 0], [0, 1], [1, 1], [2, 0]]


def test_empty_cells_are_missing_values(tmp_path: Path):
    folder = write_folder(tmp_path, features_csv="1,\n,1\nnull,1\nNaN,0\n")
    assert np.isnan(read(folder).features).sum() == 4
    with pytest.raises(DatasetError, match="4 feature values in 4 rows are NaN or empty: vertices 0, 1, 2, 3"):
        load(folder)


def test_label_rows_must_match_without_ids(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"labels\.csv has 3 rows for 4 vertices"):
        read(write_folder(tmp_path, labels_csv="0\n1\n0\n"))


def test_labels_for_unknown_vertices_are_refused(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"labels\.csv names 1 times a vertex that does not exist: line 3: 9"):
        read(write_folder(tmp_path, labels_csv="id,label\n0,1\n9,1\n"))


@pytest.mark.parametrize("suffix", ["csv", "npy"])
def test_edges_alone_name_their_vertices_and_say_what_to_add(tmp_path: Path, suffix: str):
    file = tmp_path / f"graph.{suffix}"
    if suffix == "npy":
        np.save(file, np.array([[5, 7, 90], [7, 90, 5]]))
    else:
        file.write_text("5,7\n7,90\n90,5\n")
    raw = read(file)
    assert raw.node_ids.tolist() == [5, 7, 90]
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1, 2], [1, 2, 0])
    with pytest.raises(DatasetError, match="has no labels for its 3 vertices") as error:
        load(file)
    assert error.value.why == f"graph.{suffix} is an edge list alone: it has no features and no labels"
    assert "edges.csv, labels.csv" in error.value.fix


def test_an_empty_list_alone_is_refused(tmp_path: Path):
    (tmp_path / "edges.csv").write_text("source,target\n")
    with pytest.raises(DatasetError, match="holds no edge"):
        read(tmp_path)


def test_a_folder_without_features_says_so_or_makes_them_up(tmp_path: Path):
    folder = write_folder(tmp_path / "a", labels_csv="0\n1\n0\n1\n0\n")
    (folder / "features.csv").unlink()
    assert read(folder).num_nodes == 5
    with pytest.raises(DatasetError, match="has no features for its 5 vertices") as error:
        load(folder)
    assert "has edges but no features.csv and no features.npy" in error.value.why
    assert load(folder, features="one_hot").features.shape == (5, 5)


def test_without_features_vertices_are_what_edges_and_labels_name(tmp_path: Path):
    (tmp_path / "edges.csv").write_text("10,20\n20,10\n")
    (tmp_path / "labels.csv").write_text("id,label\n20,a\n99,b\n")
    raw = read(tmp_path)
    assert raw.node_ids.tolist() == [10, 20, 99]
    assert raw.labels.tolist() == ["", "a", "b"]
    (tmp_path / "edges.csv").write_text("10,20\nx,10\n")
    raw = read(tmp_path)
    assert raw.node_ids.tolist() == ["10", "20", "99", "x"]
    assert raw.labels.tolist() == ["", "a", "b", ""]


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bz2", "lz4"])
def test_packed_files_are_opened(tmp_path: Path, codec: str):
    suffix = {"gzip": "gz", "zstd": "zst", "bz2": "bz2", "lz4": "lz4"}[codec]
    with pyarrow.CompressedOutputStream(str(tmp_path / f"edges.csv.{suffix}"), codec) as stream:
        stream.write(RING.encode())
    (tmp_path / "labels.csv").write_text("0\n1\n0\n1\n")
    assert read(tmp_path).num_edges == 8
    assert read(tmp_path / f"edges.csv.{suffix}").num_nodes == 4


def test_part_files_are_read_in_natural_order(tmp_path: Path):
    folder = write_folder(tmp_path / "a")
    (folder / "edges.csv").unlink()
    parts = folder / "edges" / "day=1"
    parts.mkdir(parents=True)
    for number, edges in {10: "3,0\n", 2: "0,1\n1,2\n", 9: "2,3\n"}.items():
        (parts / f"part-{number}.csv").write_text("source,target\n" + edges)
    (folder / "edges" / "_SUCCESS").write_text("")
    assert read(folder).sources.tolist() == [0, 1, 2, 3]
    assert read(parts).sources.tolist() == [0, 1, 2, 3]
    (parts / "part-9.csv").write_text("source,target\n2,x\n")
    with pytest.raises(DatasetError, match=r"part-9\.csv names 1 times a vertex that does not exist: line 2: x"):
        read(folder)


def test_one_text_id_makes_the_ids_of_all_parts_text(tmp_path: Path):
    (tmp_path / "part-0.csv").write_text("007,1\n")
    (tmp_path / "part-1.csv").write_text("a,7\n")
    assert read(tmp_path).node_ids.tolist() == ["007", "1", "7", "a"]


@pytest.mark.parametrize(
    ("above", "undirected"),
    [
        ("# Undirected graph (each unordered pair of nodes is saved once): com-Amazon\n", True),
        ("# Directed graph (each unordered pair of nodes is saved once): web-Google\n", False),
        ("% sym unweighted\n", True),
        ("% asym weighted\n", False),
        ("# Directed Node Graph\n# the graph is undirected\n", None),
        ("", None),
    ],
)
def test_comments_may_say_whether_edges_go_both_ways(tmp_path: Path, above: str, undirected: bool | None):
    (tmp_path / "graph.txt").write_text(above + "0 1\n1 2\n")
    assert read(tmp_path / "graph.txt").undirected is undirected


def test_two_kinds_of_vertices_with_one_numbering_are_refused(tmp_path: Path):
    (tmp_path / "out.actors").write_text("% bip unweighted\n1 1\n1 2\n")
    with pytest.raises(DatasetError, match="joins two kinds of vertices"):
        read(tmp_path / "out.actors")


def test_a_line_of_sizes_is_not_taken_for_an_edge(tmp_path: Path):
    (tmp_path / "graph.txt").write_text("4 4 2\n1 2 0.5\n4 3 1\n")
    with pytest.raises(DatasetError, match=r"graph\.txt:1: '4 4 2' is followed by exactly 2 lines"):
        read(tmp_path / "graph.txt")
    (tmp_path / "graph.txt").write_text("4 4 2\n1 2 0.5\n4 5 1\n")
    assert read(tmp_path / "graph.txt").num_edges == 3


def test_two_files_for_one_thing_are_refused(tmp_path: Path):
    folder = write_folder(tmp_path, features_csv=FEATURES, features_npy=np.eye(4))
    with pytest.raises(DatasetError, match=r"holds features\.csv and features\.npy"):
        read(folder)


def test_an_object_array_of_features_is_refused(tmp_path: Path):
    with pytest.raises(DatasetError, match="holds Python objects"):
        read(write_folder(tmp_path, features_npy=np.array([{}, 1, 2, 3], dtype=object)))


@given(which=st.sampled_from(["features_csv", "labels_csv", "train_csv"]), content=st.binary(max_size=60))
@settings(max_examples=examples(150))
def test_any_bytes_in_any_file_give_a_graph_or_a_dataset_error(tmp_path_factory, which: str, content: bytes):
    folder = write_folder(tmp_path_factory.mktemp("any"), **{which: content})
    result = graph_or_error(folder)
    if isinstance(result, DatasetError):
        assert result.what
        assert result.why
        assert result.fix
    else:
        assert result.num_nodes >= 4


def graph_or_error(folder: Path) -> RawGraph | DatasetError:
    try:
        return read(folder)
    except DatasetError as error:
        return error

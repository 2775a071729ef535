"""A folder of plain files: ids of every kind, and errors that say what to add."""

import gzip
from pathlib import Path

import numpy as np
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
        ("id,a\n-1,0\n", r"features\.csv:2: '-1' is negative"),
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
def test_edges_alone_say_what_to_add(tmp_path: Path, suffix: str):
    file = tmp_path / f"graph.{suffix}"
    if suffix == "npy":
        np.save(file, np.array([[0, 1, 2], [1, 2, 0]]))
    else:
        file.write_text(RING)
    with pytest.raises(DatasetError, match="is an edge list alone: it has no features and no labels") as error:
        load(file)
    assert "features.csv and labels.csv" in error.value.fix


def test_a_folder_without_features_says_so(tmp_path: Path):
    (tmp_path / "edges.csv").write_text(RING)
    with pytest.raises(DatasetError, match=r"has edges\.csv but no features and no labels") as error:
        load(tmp_path)
    assert "features: degree | one_hot" in error.value.why


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

"""Inputs that break other readers, one test each: kept, counted, or refused with the place and the way out."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from common.errors import DatasetError
from graph_server.ingest.edge_rows import row_edges
from tests.graph_server.datasets.folders import applied, load, masks, raw_graph, write_folder


def test_an_isolated_vertex_with_the_highest_id_is_kept(tmp_path: Path):
    folder = write_folder(tmp_path, features_csv="1\n2\n3\n4\n5\n", labels_csv="0\n1\n0\n1\n0\n")
    assert (load(folder).num_nodes, load(folder).report["isolated"]) == (5, 1)


def test_a_vertex_without_in_edges_is_counted():
    report = applied(raw_graph(sources=np.array([0, 1]), targets=np.array([1, 2])), directed=True).report
    assert report["zero_in_degree"] == 2


def test_duplicate_edges_are_kept_and_counted_unless_the_format_is_a_set():
    twice = {"sources": np.array([0, 0, 1]), "targets": np.array([1, 1, 0])}
    kept = applied(raw_graph(**twice), directed=True)
    assert (kept.num_edges, kept.report["duplicate_edges"]) == (3, 1)
    assert applied(raw_graph(**twice, edges_are_a_set=True), directed=True).num_edges == 2
    assert applied(raw_graph(**twice), directed=True, dedup=True).report["duplicate_edges_removed"] == 1


def test_self_loops_of_the_file_are_kept_once():
    dataset = applied(raw_graph(sources=np.array([0, 1]), targets=np.array([0, 0])), directed=False)
    assert (dataset.num_edges, dataset.report["self_loops"]) == (3, 1)


def test_a_directed_file_asks_and_shows_the_reciprocity():
    with pytest.raises(DatasetError, match=r"50\.0% of them have their reverse") as error:
        applied(raw_graph(sources=np.array([0, 1, 1, 2]), targets=np.array([1, 0, 2, 3])))
    assert "dataset.directed: false" in error.value.fix


@pytest.mark.parametrize("ids", [("a", "b c", "ä"), (7, 9, 8369), (1, 2, 3), (0, 2**40, 2**63 - 1)])
def test_ids_of_any_kind_become_rows_and_stay_the_users(tmp_path: Path, ids: tuple):
    first, second, third = ids
    folder = write_folder(
        tmp_path,
        edges_csv=f"{first},{second}\n{second},{third}\n",
        features_csv=f"id,f\n{third},1\n{first},2\n{second},3\n",
        labels_csv=f"id,y\n{first},0\n{second},1\n",
    )
    dataset = load(folder, directed=True)
    assert dataset.node_ids.tolist() == [third, first, second]
    assert (dataset.sources.tolist(), dataset.targets.tolist()) == ([1, 2], [2, 0])


@pytest.mark.parametrize("number", [str(2**63), str(-(2**63) - 1)])
def test_an_id_beyond_64_bits_is_refused_with_its_line(tmp_path: Path, number: str):
    with pytest.raises(DatasetError, match=rf"edges\.csv:2: '{number}' is beyond 64 bits"):
        load(write_folder(tmp_path, edges_csv=f"0,1\n1,{number}\n"))


def test_a_negative_id_is_refused_with_its_line_or_taken_by_opt_in(tmp_path: Path):
    folder = write_folder(
        tmp_path, edges_csv="-7,5\n5,-7\n5,-9223372036854775808\n", features_csv=None,
        labels_csv="id,y\n-7,0\n5,1\n-9223372036854775808,1\n",
    )  # fmt: skip
    with pytest.raises(DatasetError, match=r"edges\.csv:1: the id -7 is negative \(1 of 3 are\)") as error:
        load(folder, features="degree", directed=True)
    assert "dataset.negative_ids: true" in error.value.fix
    dataset = load(folder, features="degree", directed=True, negative_ids=True)
    assert dataset.node_ids.tolist() == [-(2**63), -7, 5]
    assert (dataset.sources.tolist(), dataset.targets.tolist()) == ([1, 2, 2], [2, 1, 0])
    assert dataset.labels.tolist() == [1, 0, 1]
    assert dataset.report["negative_ids"] == 2
    assert "2 vertices have negative ids, which are kept" in dataset.report["notes"]


def test_a_negative_id_among_vertices_that_are_listed(tmp_path: Path):
    folder = write_folder(
        tmp_path, edges_csv="-1,0\n0,-1\n", features_csv="id,f\n0,1\n-1,2\n", labels_csv="id,y\n-1,1\n0,0\n"
    )
    with pytest.raises(DatasetError, match=r"features\.csv:3: the id -1 is negative"):
        load(folder)
    assert load(folder, negative_ids=True).node_ids.tolist() == [0, -1]


def test_a_negative_end_of_an_edge_is_no_vertex_unless_it_is_listed(tmp_path: Path):
    folder = write_folder(tmp_path, edges_csv="0,1\n-1,0\n1,0\n")
    for options in ({}, {"negative_ids": True}):
        with pytest.raises(DatasetError, match="names 1 times a vertex that does not exist: line 2: -1"):
            load(folder, **options)
    assert load(folder, drop_unknown_edges=True).num_edges == 2


def test_ids_that_are_whole_floats_pass_and_rounded_ones_do_not(tmp_path: Path):
    assert load(write_folder(tmp_path / "a", edges_csv="0.0,1.0\n1.0,0\n")).num_edges == 2
    edges = np.array([[0, 1, 16_777_217], [1, 0, 0]], np.float32)
    with pytest.raises(DatasetError, match=r"16777216\.0 at position 2 is no exact vertex id \(float32\)"):
        load(write_folder(tmp_path / "b", edges_npy=edges))


def test_edges_to_unknown_vertices_are_named_or_dropped(tmp_path: Path):
    folder = write_folder(tmp_path, edges_csv="0,1\n1,0\n7,1\n")
    with pytest.raises(DatasetError, match="names 1 times a vertex that does not exist: line 3: 7"):
        load(folder)
    assert load(folder, drop_unknown_edges=True).num_edges == 2


@pytest.mark.parametrize("dtype", ["f8", "f2", "i8", "u1", "?"])
def test_features_of_any_number_type_are_cast(dtype: str):
    assert applied(raw_graph(features=np.eye(4, dtype=dtype))).features.dtype == np.float32


def test_a_feature_beyond_float32_is_refused():
    with pytest.raises(DatasetError, match="1 feature values are not finite in float32: vertices 2"):
        applied(raw_graph(features=np.array([[0], [0], [1e39], [0]])))


def test_nan_and_empty_features_are_counted_or_filled(tmp_path: Path):
    folder = write_folder(tmp_path, features_csv="1,\nnan,2\n3,4\n5,6\n")
    with pytest.raises(DatasetError, match="2 feature values in 2 rows are NaN or empty: vertices 0, 1"):
        load(folder)
    assert load(folder, nan="zero").report["nan_features"] == 2


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([0, 1, -1, 1]), [0, 1, -1, 1]),
        (np.array([0, 1, np.nan, 1]), [0, 1, -1, 1]),
        (np.array([[0], [1], [-1], [1]]), [0, 1, -1, 1]),
        (np.array([[1, 0], [0, 1], [0, 0], [0, 1]]), [0, 1, -1, 1]),
        (np.array([0, 1, -1, 1], np.int8), [0, 1, -1, 1]),
        (np.array(["x", "y", "", "y"]), [0, 1, -1, 1]),
        (np.array(["x", "y", "null", "y"]), [0, 1, -1, 1]),
        (np.array([1, 40, -1, 40]), [0, 1, -1, 1]),
    ],
)
def test_labels_in_any_dress(labels: np.ndarray, expected: list):
    dataset = applied(raw_graph(labels=labels))
    assert dataset.labels.tolist() == expected
    assert len(dataset.class_values) == 2


def test_a_class_without_train_vertex_warns_and_an_unlabelled_train_vertex_is_refused():
    warnings = applied(raw_graph(masks=masks([0, 2], [1], [3]))).report["warnings"]
    assert "classes 1 have no train vertex" in warnings[0]
    with pytest.raises(DatasetError, match="1 train vertices have no label: 1"):
        applied(raw_graph(labels=np.array([0, -1, 0, 1]), masks=masks([0, 1], [2], [3])))


def test_masks_may_be_missing_and_need_not_cover_but_not_overlap_or_be_empty(tmp_path: Path):
    assert "stratified split 0.6 / 0.2 / 0.2" in " ".join(applied(raw_graph()).report["notes"])
    assert "2 vertices are in none" in " ".join(applied(raw_graph(masks=masks([0], [1], []))).report["notes"])
    with pytest.raises(DatasetError, match="1 vertices are both train and test: 0"):
        applied(raw_graph(masks=masks([0], [1], [0])))
    with pytest.raises(DatasetError, match="no vertex of 4 is in the train mask"):
        applied(raw_graph(masks=masks([], [1], [2])))
    columns = np.zeros((4, 3, 5), bool)
    columns[0, 0, 4] = columns[1, 1, 4] = True
    assert load(write_folder(tmp_path, masks_npy=columns), split_index=4).masks.tolist() == [1, 2, 0, 0]


def test_rows_beyond_2_to_the_31_are_not_narrowed():
    far = 2**31 + 5
    sources, targets, _ = row_edges(Path("edges"), np.array([0, 1]), np.array([1, 0]), 2, drop=False)
    assert sources.dtype == targets.dtype == np.int64
    raw = raw_graph(node_ids=np.array([far, 1, 2, 2**62]))
    assert applied(raw).node_ids.tolist() == [far, 1, 2, 2**62]


@pytest.mark.parametrize(
    "content",
    [
        b"# SNAP\n% KONECT\n0\t1\n1 0\n",
        b"source,target\r\n0,1\r\n1,0\r\n",
        b"\xef\xbb\xbf0,1\n1,0\n\n\n",
        b"0 1 0.5 1300000000\n1 0 0.25 1300000001\n",
        gzip.compress(b"0,1\n1,0", mtime=0),
    ],
)
def test_text_in_any_dress_gives_the_same_edges(tmp_path: Path, content: bytes):
    dataset = load(write_folder(tmp_path, edges_csv=content))
    assert (dataset.sources.tolist(), dataset.targets.tolist()) == ([0, 1], [1, 0])


@pytest.mark.parametrize("content", ["0,1\n1\n", "0,1\n1,0,2\n", "0,1\n\n1,\n", '0,1\n"1,0\n'])
def test_a_line_of_another_shape_is_named(tmp_path: Path, content: str):
    with pytest.raises(DatasetError, match=r"edges\.csv:[23]: "):
        load(write_folder(tmp_path, edges_csv=content))


def test_part_10_comes_after_part_2_where_rows_are_vertices(tmp_path: Path):
    for number in range(12):
        table = {"x": [float(number)], "y": [number % 2]}
        file = tmp_path / "nodes" / f"part-{number}.snappy.parquet"
        file.parent.mkdir(exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.table(table), file, compression="snappy")
    pyarrow.parquet.write_table(pyarrow.table({"src": [2], "dst": [10]}), tmp_path / "edges.parquet")
    dataset = load(tmp_path, directed=True)
    assert dataset.features.reshape(-1).tolist() == list(range(12))


def test_pickles_are_refused_unless_asked_for_and_then_restricted(tmp_path: Path):
    with pytest.raises(DatasetError, match="holds Python objects"):
        load(write_folder(tmp_path / "a", features_npy=np.array([{}, 1, 2, 3], dtype=object)))
    (tmp_path / "data.pt").write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(DatasetError, match="is a pickle"):
        load(tmp_path / "data.pt")


def test_a_truncated_file_is_named(tmp_path: Path):
    whole = gzip.compress(b"0,1\n" * 10_000, mtime=0)
    with pytest.raises(DatasetError, match=r"edges\.csv cannot be read: Truncated compressed stream"):
        load(write_folder(tmp_path / "a", edges_csv=whole[: len(whole) // 2]))
    folder = write_folder(tmp_path / "b", features_npy=np.eye(4))
    file = folder / "features.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(DatasetError, match=r"features\.npy cannot be read"):
        load(folder)


def test_paths_with_blanks_plus_and_unicode(tmp_path: Path):
    assert load(write_folder(tmp_path / "my graph+1 é%20")).name == "my graph+1 é%20"

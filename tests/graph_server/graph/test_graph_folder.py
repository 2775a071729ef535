"""A folder holds the graph, all of it, under relabelled ids; damage is found and named; nobody sees half a folder."""

import json
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DatasetError
from graph_server.graph.csr import row_of_entry
from graph_server.graph.cut import make_cut
from graph_server.graph.graph_folder import GraphFolder, write_graph_folder
from tests.examples import examples
from tests.graph_server.graph.graphs import Graph, folder_of, graph_of, graphs, random_cut

PAIRS = [(0, 1), (1, 2), (2, 0), (2, 2), (3, 4), (3, 4), (5, 1)]


@pytest.fixture
def folder(tmp_path: Path) -> GraphFolder:
    graph = graph_of(PAIRS, 7)
    return folder_of(graph, random_cut(graph, 3), tmp_path)


@given(graph=graphs(), num_intervals=st.integers(1, 9))
@settings(max_examples=examples(20))
def test_round_trip(graph: Graph, num_intervals: int, tmp_path_factory: pytest.TempPathFactory):
    cut = random_cut(graph, num_intervals)
    folder = folder_of(graph, cut, tmp_path_factory.mktemp("folder"))
    assert folder.cut.sha256 == cut.sha256
    assert (folder.manifest.num_nodes, folder.manifest.num_edges) == (graph.num_nodes, len(graph.sources))
    assert np.array_equal(folder.ids, graph.node_ids[cut.order])
    pairs = []
    for interval in range(num_intervals):
        arrays, first = folder.interval(interval), int(cut.bounds[interval])
        rows = cut.order[first : cut.bounds[interval + 1]]
        assert np.array_equal(arrays.features, graph.features[rows])
        assert np.array_equal(arrays.labels, graph.labels[rows])
        assert np.array_equal(arrays.masks, graph.masks[rows])
        targets = cut.order[row_of_entry(arrays.indptr) + first].tolist()
        pairs += zip(cut.order[arrays.sources].tolist(), targets, strict=True)
        assert arrays.loops.tolist() == [(row, row) in graph.pairs() for row in rows.tolist()]
    assert sorted(pairs) == graph.pairs()


def test_what_the_manifest_says(folder: GraphFolder):
    manifest = folder.manifest
    assert manifest.name == "small"
    assert (manifest.num_nodes, manifest.num_edges, manifest.directed, manifest.symmetric) == (7, 7, True, False)
    assert (manifest.num_features, manifest.feature_dtype) == (2, "float32")
    assert (manifest.num_classes, manifest.class_values) == (3, (10, 20, 30))
    # Rows 0, 1, 4 and 5 train; rows 0 and 4 have no label, 1 and 5 have label 0.
    assert manifest.train_class_counts == (2, 0, 0)
    assert manifest.report == {"self_loops": 0, "notes": ["none"]}
    assert (manifest.cut.method, manifest.cut.num_intervals) == ("hash", 3)
    assert folder.interval_edges.sum() == 7
    assert folder.array(0, "sources").dtype == np.int32


def test_ids_that_are_words_stay_words(tmp_path: Path):
    graph = graph_of(PAIRS, 7, string_ids=True)
    cut = random_cut(graph, 3)
    folder = folder_of(graph, cut, tmp_path)
    assert folder.ids.tolist() == graph.node_ids[cut.order].tolist()


def test_a_graph_called_undirected_whose_duplicates_differ_is_not_taken_as_symmetric(tmp_path: Path):
    graph = replace(graph_of([(0, 1), (0, 1), (1, 0)], 2), directed=False)
    manifest = folder_of(graph, random_cut(graph, 1), tmp_path).manifest
    assert (manifest.directed, manifest.symmetric) == (False, False)


def test_a_missing_file_is_named(folder: GraphFolder):
    (folder.path / "intervals/00001/labels.npy").unlink()
    with pytest.raises(DatasetError, match=r"intervals/00001/labels.npy is damaged") as caught:
        GraphFolder.open(folder.path)
    assert caught.value.why == "it is not there"


def test_a_truncated_file_is_named_with_its_sizes(folder: GraphFolder):
    path = folder.path / "intervals/00002/features.npy"
    size = path.stat().st_size
    os.truncate(path, size - 1)
    with pytest.raises(DatasetError, match=r"intervals/00002/features.npy is damaged") as caught:
        GraphFolder.open(folder.path)
    assert caught.value.why == f"it has {size - 1} bytes, the manifest says {size}"


def test_a_changed_byte_is_found_by_verify(folder: GraphFolder):
    path = folder.path / "intervals/00000/features.npy"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    GraphFolder.open(folder.path)
    with pytest.raises(DatasetError, match=r"intervals/00000/features.npy is damaged"):
        GraphFolder.open(folder.path, verify=True)


def test_bounds_that_do_not_hash_are_found_by_verify(folder: GraphFolder):
    edit(folder.path, lambda manifest: manifest["cut"].update(cut_sha256="0" * 64))
    with pytest.raises(DatasetError, match="order and bounds do not hash to cut_sha256"):
        GraphFolder.open(folder.path, verify=True)


def test_another_format_version_is_refused(folder: GraphFolder):
    edit(folder.path, lambda manifest: manifest.update(format_version=3, bounds="elsewhere"))
    with pytest.raises(DatasetError, match="has format_version 3") as caught:
        GraphFolder.open(folder.path)
    assert caught.value.why == "this program reads format_version 1 and 2"


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'{"format_version": 1}'])
def test_a_manifest_that_is_none_is_refused(folder: GraphFolder, raw: bytes):
    (folder.path / "manifest.json").write_bytes(raw)
    with pytest.raises(DatasetError, match=r"manifest.json cannot be read"):
        GraphFolder.open(folder.path)


def test_a_folder_half_written_is_no_graph_folder(folder: GraphFolder, tmp_path: Path):
    (folder.path / "manifest.json").unlink()
    with pytest.raises(DatasetError, match="is not a graph folder") as caught:
        GraphFolder.open(folder.path)
    assert "its writing was interrupted" in caught.value.why
    with pytest.raises(DatasetError, match="is not a graph folder"):
        GraphFolder.open(tmp_path / "nowhere.dorylus")


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path):
    graph = graph_of(PAIRS, 7)
    broken = replace(graph, report={"notes": object()})
    with pytest.raises(TypeError, match="object has no place in a manifest"):
        write_graph_folder(broken, random_cut(graph, 3), tmp_path / "small.dorylus")
    assert list(tmp_path.iterdir()) == []


def test_the_later_of_two_different_graphs_stays(tmp_path: Path):
    path = tmp_path / "small.dorylus"
    graph = graph_of(PAIRS, 7)
    for num_intervals in (2, 3):
        write_graph_folder(graph, random_cut(graph, num_intervals), path)
    assert GraphFolder.open(path, verify=True).num_intervals == 3
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_graph_is_not_moved_away_under_a_reader(tmp_path: Path):
    path = tmp_path / "small.dorylus"
    graph = graph_of(PAIRS, 7)
    write_graph_folder(graph, random_cut(graph, 2), path)
    before = path.stat().st_ino
    write_graph_folder(graph, random_cut(graph, 2), path)
    assert path.stat().st_ino == before
    assert list(tmp_path.iterdir()) == [path]


def test_writers_at_the_same_time_do_no_harm(tmp_path: Path):
    path = tmp_path / "small.dorylus"
    graph = graph_of(PAIRS, 7)
    failures: list[Exception] = []

    def write(num_intervals: int) -> None:
        try:
            for _ in range(5):
                write_graph_folder(graph, random_cut(graph, num_intervals), path)
        except Exception as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(1 + number % 2,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    GraphFolder.open(path, verify=True)
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_damaged_in_place_is_replaced(folder: GraphFolder):
    graph = graph_of(PAIRS, 7)
    shutil.rmtree(folder.path / "intervals")
    write_graph_folder(graph, make_cut(graph.edges, 3, method="hash"), folder.path)
    GraphFolder.open(folder.path, verify=True)


def test_only_a_name_of_ours_is_written(tmp_path: Path):
    graph = graph_of(PAIRS, 7)
    with pytest.raises(DatasetError, match="data is not the name of a graph folder") as caught:
        write_graph_folder(graph, random_cut(graph, 3), tmp_path / "data")
    assert caught.value.fix == "name it data.dorylus"
    (tmp_path / "file.dorylus").touch()
    with pytest.raises(DatasetError, match=r"file.dorylus is a file"):
        write_graph_folder(graph, random_cut(graph, 3), tmp_path / "file.dorylus")


def edit(path: Path, change: object) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))

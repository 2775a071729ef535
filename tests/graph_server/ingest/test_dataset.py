"""Whole datasets: strange but legal graphs, the report, the fingerprint."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from tests.graph_server.datasets.folders import applied, load, masks, raw_graph, write_folder


def test_one_vertex_without_edges(tmp_path: Path):
    folder = write_folder(tmp_path, edges_csv="", features_csv="1,2\n", labels_csv="5\n")
    dataset = load(folder)
    assert (dataset.num_nodes, dataset.num_edges, dataset.class_values) == (1, 0, (5,))
    assert dataset.masks.tolist() == [1]


def test_an_isolated_vertex_with_the_highest_id_is_kept(tmp_path: Path):
    folder = write_folder(tmp_path, features_csv="1,0\n0,1\n1,1\n2,0\n3,3\n", labels_csv="0\n1\n0\n1\n0\n")
    dataset = load(folder)
    assert dataset.num_nodes == 5
    assert dataset.report["isolated"] == 1


def test_a_hub_connected_to_all():
    num_nodes = 2000
    spokes = np.arange(1, num_nodes)
    raw = raw_graph(
        node_ids=np.arange(num_nodes),
        sources=np.zeros(num_nodes - 1, np.int64),
        targets=spokes,
        features=np.ones((num_nodes, 1)),
        labels=np.arange(num_nodes) % 2,
    )
    dataset = applied(raw, directed=False)
    assert dataset.num_edges == 2 * (num_nodes - 1)
    assert dataset.report["largest_in_degree"] == num_nodes - 1


def test_no_vertex_is_refused():
    raw = raw_graph(node_ids=np.zeros(0, np.int64), sources=np.zeros(0, np.int64), targets=np.zeros(0, np.int64))
    with pytest.raises(DatasetError, match="has no vertex"):
        applied(raw)


@pytest.mark.parametrize("part", ["features", "labels"])
def test_rows_must_match(part: str):
    with pytest.raises(DatasetError, match=f"{part} have 3 rows for 4 vertices"):
        applied(raw_graph(**{part: np.ones((3, 1))}))


def test_the_report_has_every_count():
    report = applied(raw_graph(masks=masks([0, 1], [2], [3]))).report
    assert report["edges_raw"] == report["edges_after_dedup"] == report["edges"] == 8
    assert (report["nodes"], report["features"], report["classes"]) == (4, 2, 2)
    assert (report["train"], report["valid"], report["test"], report["unlabelled"]) == (2, 1, 1, 0)


def test_the_fingerprint_follows_content_and_options(tmp_path: Path):
    folder = write_folder(tmp_path / "a", edges_csv="0,1\n1,2\n1,2\n")
    same = write_folder(tmp_path / "b", edges_txt="# the same\r\n0 1\r\n1 2\r\n1 2")
    variants = [
        {"directed": True},
        {"directed": False},
        {"directed": True, "dedup": True},
        {"directed": True, "normalize_features": "row"},
        {"directed": True, "split_seed": 1},
    ]
    prints = [load(folder, **options).fingerprint for options in variants]
    assert len(set(prints)) == len(variants)
    assert [load(same, **options).fingerprint for options in variants] == prints
    write_folder(folder, edges_csv="0,1\n1,2\n1,2\n", labels_csv="0\n1\n0\n0\n")
    assert load(folder, directed=True).fingerprint != prints[0]


def test_arrays_are_of_the_promised_types(tmp_path: Path):
    dataset = load(write_folder(tmp_path))
    assert dataset.sources.dtype == dataset.targets.dtype == dataset.labels.dtype == np.int64
    assert dataset.features.dtype == np.float32
    assert dataset.masks.dtype == np.uint8
    assert dataset.features.flags.c_contiguous
    assert dataset.sources.flags.c_contiguous

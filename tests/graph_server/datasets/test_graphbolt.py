"""GraphBolt OnDiskDataset folders."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import graphbolt
from tests.graph_server.datasets.folders import load


def read(folder: Path, **options):
    return graphbolt.read(folder, DatasetSpec(path=str(folder), **options))


def change(folder: Path, old: str, new: str) -> Path:
    graphbolt.example(folder)
    meta = folder / graphbolt.META
    assert old in meta.read_text()
    meta.write_text(meta.read_text().replace(old, new))
    return folder


def test_the_sets_are_masks_and_labels(tmp_path: Path):
    raw = read(graphbolt.example(tmp_path))
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 0])
    assert raw.labels.tolist() == [0, 1, 0, 1]
    assert [np.flatnonzero(raw.masks[name]).tolist() for name in ("train", "valid", "test")] == [[0, 1], [2], [3]]
    assert load(tmp_path, directed=True).num_classes == 2


def test_edges_as_text(tmp_path: Path):
    folder = change(tmp_path, "format: numpy, path: data/edges.npy", "format: csv, path: data/edges.csv")
    (folder / "data" / "edges.csv").write_text("0,1\n3,2\n")
    assert read(folder).sources.tolist() == [0, 3]


def test_a_vertex_in_no_set_is_unlabelled(tmp_path: Path):
    graphbolt.example(tmp_path)
    np.save(tmp_path / "data" / "test_seeds.npy", np.zeros(0, int))
    np.save(tmp_path / "data" / "test_labels.npy", np.zeros(0, int))
    assert np.array_equal(read(tmp_path).labels, [0, 1, 0, np.nan], equal_nan=True)


def test_pairs_of_vertices_are_another_task(tmp_path: Path):
    graphbolt.example(tmp_path)
    np.save(tmp_path / "data" / "train_seeds.npy", np.zeros((2, 2), int))
    with pytest.raises(DatasetError, match="has no labels for its 4 vertices") as error:
        load(tmp_path, directed=True)
    assert error.value.why == "metadata.yaml names no task with labels of vertices"


def test_a_homogeneous_part_is_picked(tmp_path: Path):
    folder = change(
        tmp_path,
        "nodes: [{num: 4}]\n  edges: [{format: numpy, path: data/edges.npy}]",
        "nodes: [{type: author, num: 2}, {type: paper, num: 4}]\n"
        "  edges:\n"
        "  - {type: 'author:writes:paper', format: numpy, path: data/edges.npy}\n"
        "  - {type: 'paper:cites:paper', format: numpy, path: data/edges.npy}",
    )
    raw = read(folder, edge_type="cites")
    assert (raw.num_nodes, raw.edge_type, raw.node_type) == (4, "paper:cites:paper", "paper")
    assert raw.features is None
    with pytest.raises(DatasetError, match="holds 2 kinds of edges"):
        read(folder, node_type="author")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("num: 4", "num: 3", r"edges\.npy names 2 times a vertex that does not exist: edge 2: 3; edge 3: 3"),
        ("num: 4", "num: 5", r"feat\.npy cannot be read: it has shape \(4, 2\) for 5 vertices"),
        ("num: 4", "num: 0", "announces 0 vertices"),
        ("num: 4", "num: 999999999999999", "announces 999999999999999 vertices"),
        ("num: 4", "type: paper, num: 4", "gives 0 numbers of vertices of the type None"),
        ("num: 4", "number: 4", r"metadata\.yaml cannot be read: Object missing required field `num`"),
        ("data/feat.npy", "data/nothing.npy", "lacks data/nothing.npy"),
        ("data/feat.npy", "/etc/hostname", "names /etc/hostname, which lies outside"),
        ("name: feat, format: numpy", "name: feat, format: torch", "data/feat.npy has the format torch"),
        ("format: numpy, path: data/edges", "format: torch, path: data/edges", "Invalid enum value 'torch'"),
        ("dataset_name: ring", "x: [", r"metadata\.yaml"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, old: str, new: str, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(change(tmp_path, old, new))

"""A graph folder read back is the dataset that was written, in the user's order."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from common.errors import DatasetError
from graph_server.graph.csr import EdgeList
from graph_server.graph.cut import make_cut
from graph_server.graph.graph_folder import write_graph_folder
from graph_server.ingest.dataset import Dataset
from tests.graph_server.datasets.folders import applied, load, masks, raw_graph

CONTENTS: dict[str, dict[str, Any]] = {
    "numbers": {"node_ids": np.array([7, 3, 2**40, 1]), "labels": np.array([4, 9, 4, -1])},
    "texts": {"node_ids": np.array(["d", "b c", "ä", "007"]), "labels": np.array(["x", "", "y", "x"])},
    "one way, twice, loops": {"sources": np.array([0, 0, 2, 3]), "targets": np.array([1, 1, 2, 1])},
    "row by row": {"usual_normalization": "row"},
    "several labels": {"labels": np.array([[1, 1, 0], [0, np.nan, 1], [0, 1, 0], [np.nan] * 3])},
    "numbers to be met": {"labels": np.array([0.5, -1, 1e-3, np.nan])},
    "whole numbers to be met": {"labels": np.array([[2, -1], [0, 1], [1, 0], [3, 4]]), "task": "regression"},
}


def written(folder: Path, *, directed: bool, **changes: Any) -> Dataset:
    dataset = applied(raw_graph(masks=masks([0, 2], [1], []), **changes), directed=directed)
    edges = EdgeList(dataset.sources, dataset.targets, dataset.num_nodes)
    write_graph_folder(dataset, make_cut(edges, 3, method="hash", seed=1), folder)
    return dataset


def pairs(dataset: Dataset) -> list[tuple[int, int]]:
    return sorted(zip(dataset.sources.tolist(), dataset.targets.tolist(), strict=True))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("changes", CONTENTS.values(), ids=CONTENTS.keys())
def test_everything_comes_back(tmp_path: Path, changes: dict[str, Any], directed: bool):
    before = written(tmp_path / "ring.dorylus", directed=directed, **changes)
    after = load(tmp_path / "ring.dorylus")
    assert (after.format, after.directed, after.class_values) == ("graph_folder", directed, before.class_values)
    assert pairs(after) == pairs(before)
    for name in ("node_ids", "features", "masks"):
        assert np.array_equal(getattr(after, name), getattr(before, name)), name
    assert (after.task, after.labels.dtype) == (before.task, before.labels.dtype)
    assert np.array_equal(after.labels, before.labels, equal_nan=True)


def change(manifest: Path, **values: object) -> None:
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | values))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"num_nodes": 5}, "order.npy is no permutation"),
        ({"num_nodes": 10**15}, "announces 1000000000000000 vertices"),
        ({"num_features": 3}, "interval 0 has"),
        ({"class_values": ["only one"]}, "labels are no classes"),
        ({"format_version": 99}, "has format_version 99"),
        ({"files": 7}, "cannot be read"),
    ],
)
def test_a_manifest_that_does_not_fit(tmp_path: Path, values: dict[str, object], words: str):
    written(tmp_path / "ring.dorylus", directed=False)
    change(tmp_path / "ring.dorylus" / "manifest.json", **values)
    with pytest.raises(DatasetError, match=words):
        load(tmp_path / "ring.dorylus")


def test_one_changed_byte_is_named(tmp_path: Path):
    written(tmp_path / "ring.dorylus", directed=False)
    file = tmp_path / "ring.dorylus" / "intervals" / "00001" / "features.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(DatasetError, match=r"00001/features\.npy is damaged"):
        load(tmp_path / "ring.dorylus")

"""A graph written as Parquet is the graph that is read back, whatever format it came from."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse

from common import plugins
from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import parquet
from graph_server.ingest import write_parquet as writing
from graph_server.ingest.dataset import apply_policies
from graph_server.ingest.detect import FORMATS
from graph_server.ingest.raw_graph import RawGraph
from graph_server.ingest.write_parquet import write_parquet
from tests.conformance import dataset_proofs as proofs
from tests.graph_server.datasets.folders import masks, raw_graph


def written_and_read(raw: RawGraph, path: Path) -> RawGraph:
    write_parquet(raw, path)
    assert parquet.detect(path)
    return parquet.read(path, DatasetSpec(path=str(path)))


def assert_same(again: RawGraph, raw: RawGraph) -> None:
    for name in ("node_ids", "sources", "targets"):
        assert np.array_equal(getattr(again, name), getattr(raw, name)), name
    for name in ("edges_are_a_set", "undirected", "usual_normalization"):
        assert getattr(again, name) == getattr(raw, name), name
    assert_equal(again.labels, raw.labels)
    assert_equal(again.features, raw.features)
    assert (again.masks is None) is (raw.masks is None)
    for name, mask in (raw.masks or {}).items():
        assert np.array_equal((again.masks or {})[name], mask)


def assert_equal(again: Any, before: Any) -> None:
    assert (again is None) is (before is None)
    if before is not None:
        dense = before.toarray() if scipy.sparse.issparse(before) else before
        assert np.array_equal(again, dense, equal_nan=dense.dtype.kind == "f")
        assert again.dtype == dense.dtype.newbyteorder("=") or dense.dtype.kind in "Ub"


@pytest.mark.parametrize("name", plugins.names(FORMATS))
def test_every_format(tmp_path: Path, name: str):
    module = plugins.load(FORMATS, name)
    raw = proofs.read(module, proofs.example(module, tmp_path / "example"))
    again = written_and_read(raw, tmp_path / "again.parquet")
    assert_same(again, raw)
    if raw.features is not None and raw.labels is not None:
        options = DatasetSpec(path="x", directed="auto" if raw.undirected is not None else True)
        before, after = (apply_policies(graph, options, name="x") for graph in (raw, again))
        assert after.fingerprint == before.fingerprint


CHANGES: dict[str, dict[str, Any]] = {
    "texts": {"node_ids": np.array(["a", "b c", "ä", "007"]), "labels": np.array(["x", "", "y", "x"])},
    "large ids": {"node_ids": np.array([7, 2**62, 0, 2**31 + 5])},
    "NaN": {"features": np.array([[1.0, np.nan], [np.inf, 0], [0, 0], [1e300, 1]])},
    "float16": {"features": np.eye(4, dtype=np.float16)},
    "bools": {"features": np.eye(4, dtype=bool)},
    "foreign byte order": {"features": np.eye(4, dtype=">f4"), "labels": np.array([0, 1, 0, 1], ">i2")},
    "one column": {"features": np.arange(4.0)[:, None]},
    "no features": {"features": None},
    "no labels": {"labels": None},
    "neither": {"features": None, "labels": None},
    "one-hot labels": {"labels": np.array([[1, 0], [0, 1], [0, 0], [1, 0]])},
    "labels of one column": {"labels": np.array([[1.0], [np.nan], [0], [2]])},
    "several labels": {"labels": np.array([[1, 1], [0, np.nan], [0, 1], [np.nan, np.nan]])},
    "whole numbers to be met": {"labels": np.array([2, -1, 0, 7]), "task": "regression"},
    "masks that overlap": {"masks": masks([0, 1], [1], [])},
    "no edges": {"sources": np.zeros(0, np.int64), "targets": np.zeros(0, np.int64)},
    "no edges between texts": {
        "node_ids": np.array(["a", "b", "c", "d"]),
        "sources": np.zeros(0, np.int64),
        "targets": np.zeros(0, np.int64),
    },
    "what is usual": {"edges_are_a_set": True, "undirected": False, "usual_normalization": "row"},
    "both ways": {"undirected": True, "usual_normalization": "standard"},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES.keys())
def test_every_kind_of_content(tmp_path: Path, changes: dict[str, Any]):
    raw = raw_graph(**changes)
    assert_same(written_and_read(raw, tmp_path / "graph.parquet"), raw)


def test_many_groups_of_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writing, "_GROUP_VALUES", 6)
    features = scipy.sparse.random(50, 4, density=0.3, format="csr", random_state=0)
    ends = np.arange(50)
    raw = raw_graph(node_ids=ends[::-1].copy(), sources=ends, targets=ends[::-1].copy(), features=features, labels=ends)
    assert_same(written_and_read(raw, tmp_path / "graph.parquet"), raw)
    assert pyarrow.parquet.ParquetFile(tmp_path / "graph.parquet" / "nodes.parquet").num_row_groups == 50
    assert pyarrow.parquet.ParquetFile(tmp_path / "graph.parquet" / "edges.parquet").num_row_groups == 17


def test_nothing_is_replaced(tmp_path: Path):
    path = tmp_path / "graph.parquet"
    path.mkdir()
    with pytest.raises(DatasetError, match=r"graph\.parquet is there already"):
        write_parquet(raw_graph(), path)
    assert os.listdir(tmp_path) == ["graph.parquet"]
    assert not os.listdir(path)


def test_what_fails_leaves_nothing(tmp_path: Path):
    with pytest.raises(DatasetError, match="features are complex128"):
        write_parquet(raw_graph(features=np.eye(4, dtype=complex)), tmp_path / "graph.parquet")
    assert not os.listdir(tmp_path)


def test_metadata_that_we_did_not_write_is_refused(tmp_path: Path):
    write_parquet(raw_graph(), tmp_path / "graph.parquet")
    file = tmp_path / "graph.parquet" / "edges.parquet"
    table = pyarrow.parquet.read_table(file)
    pyarrow.parquet.write_table(table.replace_schema_metadata({b"dorylus": b'{"undirected": "maybe"}'}), file)
    with pytest.raises(DatasetError, match="its metadata 'dorylus'"):
        parquet.read(tmp_path / "graph.parquet", DatasetSpec(path="x"))

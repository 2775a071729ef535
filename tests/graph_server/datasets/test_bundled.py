"""Cora, as it comes with the package, and the script that rebuilds it."""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from graph_server.datasets.bundled import build_cora
from graph_server.ingest.detect import BUNDLED_FOLDER, bundled_names
from tests.graph_server.datasets.folders import load


def test_the_names():
    assert bundled_names() == ("cora",)


def test_cora_is_small_and_its_licence_is_noted():
    assert (BUNDLED_FOLDER / "cora.npz").stat().st_size < 300_000
    licence = (BUNDLED_FOLDER / "LICENSE.md").read_text(encoding="utf-8")
    assert "Apache License 2.0" in licence
    assert "graphdatascience" in licence


def test_cora_is_cora():
    dataset = load("cora")
    assert dataset.name == "cora"
    assert dataset.features.shape == (2708, 1433)
    assert dataset.report["edges_raw"] == 5429
    assert dataset.num_edges == 2 * 5278
    assert not dataset.directed
    assert dataset.num_classes == 7
    assert dataset.report["self_loops"] == 0
    assert np.bincount(dataset.labels).tolist() == [818, 180, 217, 426, 351, 418, 298]
    assert dataset.node_ids[0] == 31336


def test_its_split_is_stored_and_the_same_for_every_seed():
    dataset, other = load("cora"), load("cora", split_seed=5)
    assert [int((dataset.masks == bit).sum()) for bit in (1, 2, 4)] == [140, 500, 1000]
    assert np.bincount(dataset.labels[dataset.masks == 1]).tolist() == [20] * 7
    assert np.array_equal(dataset.masks, other.masks)


def test_nothing_in_it_needs_pickle():
    with zipfile.ZipFile(BUNDLED_FOLDER / "cora.npz") as archive:
        assert all(entry.date_time == (1980, 1, 1, 0, 0, 0) for entry in archive.infolist())
    with np.load(BUNDLED_FOLDER / "cora.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)


def test_the_script_rebuilds_it(real_data: Path, tmp_path: Path):
    folder = real_data / "parquet_neo4j" / "cora"
    contents = {
        build_cora.NODES: (folder / "cora_nodes.parquet.gzip").read_bytes(),
        build_cora.RELATIONS: (folder / "cora_rels.parquet.gzip").read_bytes(),
    }
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    built = build_cora.arrays_of(*build_cora.read_wheel(wheel))
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    for file in (first, second):
        build_cora.write_npz(built, file)
    assert hashlib.sha256(first.read_bytes()).digest() == hashlib.sha256(second.read_bytes()).digest()
    with np.load(BUNDLED_FOLDER / "cora.npz") as stored:
        assert sorted(stored.files) == sorted(built)
        for name in stored.files:
            assert np.array_equal(stored[name], built[name]), name
            assert stored[name].dtype == built[name].dtype


def test_a_wheel_with_other_data_is_refused(tmp_path: Path):
    wheel = tmp_path / "some.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in build_cora.SHA256:
            archive.writestr(name, b"other")
    with pytest.raises(DatasetError, match="has SHA-256"):
        build_cora.read_wheel(wheel)


def test_it_equals_the_public_cora(real_data: Path):
    bundled, public = load("cora"), load(real_data / "planetoid_cora")
    assert sorted(np.bincount(bundled.sources).tolist()) == sorted(np.bincount(public.sources).tolist())
    assert np.array_equal(np.sort((bundled.features > 0).sum(axis=0)), np.sort((public.features > 0).sum(axis=0)))

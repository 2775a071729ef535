"""One path, one format: by content, and never a guess."""

from pathlib import Path

import numpy as np
import pytest

from common import plugins
from common.errors import DatasetError, SpecError
from graph_server.ingest.detect import FORMATS
from tests.graph_server.datasets.folders import load, write_folder, write_npz, write_planetoid


def test_each_format_is_found_by_content(tmp_path: Path):
    assert load(write_folder(tmp_path / "a")).format == "edge_list"
    assert load(write_planetoid(tmp_path / "b")).format == "planetoid"
    archive = write_npz(tmp_path / "c.npz")
    archive.rename(tmp_path / "no_ending")
    assert load(tmp_path / "no_ending", directed=True).format == "gnn_benchmark"


def test_a_folder_that_looks_like_two_formats_asks(tmp_path: Path):
    write_folder(tmp_path)
    write_planetoid(tmp_path)
    with pytest.raises(DatasetError, match="looks like edge_list and like planetoid") as error:
        load(tmp_path)
    assert error.value.fix == "set dataset.format to edge_list or planetoid"
    assert load(tmp_path, format="planetoid").format == "planetoid"


def test_no_format_says_what_was_looked_for_and_what_is_there(tmp_path: Path):
    np.savez(tmp_path / "other.npz", weights=np.zeros(2))
    with pytest.raises(DatasetError, match=r"has no known format: an archive with weights\.npy") as error:
        load(tmp_path / "other.npz")
    for name in plugins.names(FORMATS):
        assert plugins.load(FORMATS, name).LOOKS_FOR in error.value.why


@pytest.mark.parametrize("content", [b"", b"\0\1\2", b"PK\3\4 broken", b"\x1f\x8b broken", b"word\n", b"\xff\xfe0\0"])
def test_no_bytes_are_mistaken_for_a_dataset(tmp_path: Path, content: bytes):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DatasetError, match="has no known format"):
        load(tmp_path / "file")


def test_an_empty_folder_has_no_format(tmp_path: Path):
    with pytest.raises(DatasetError, match="a folder with nothing in it"):
        load(tmp_path)


def test_a_named_format_must_fit(tmp_path: Path):
    with pytest.raises(DatasetError, match="is not in the format planetoid"):
        load(write_folder(tmp_path), format="planetoid")
    with pytest.raises(SpecError, match="planetoit"):
        load(tmp_path, format="planetoit")


def test_a_path_that_does_not_exist_says_where_it_was_looked_for(tmp_path: Path):
    with pytest.raises(DatasetError, match="does not exist"):
        load(tmp_path / "nothing")
    with pytest.raises(DatasetError, match="does not exist") as error:
        load("corra")
    assert error.value.fix == "did you mean cora?"


def test_s3_is_for_a_later_version():
    with pytest.raises(DatasetError, match="s3://bucket/cora: not in this version"):
        load("s3://bucket/cora")


def test_a_relative_path_starts_at_the_folder_of_the_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_folder(tmp_path / "my graph+1 é")
    monkeypatch.chdir(tmp_path)
    assert load("my graph+1 é").name == "my graph+1 é"


def test_object_archives_of_other_tools_are_refused(real_data: Path):
    with pytest.raises(DatasetError, match="holds pickled objects: adj_matrix, node_attr"):
        load(real_data / "graphdata_npz" / "amazon_photo.npz")


def test_a_real_edge_list_alone_is_refused(real_data: Path):
    with pytest.raises(DatasetError, match="has no labels for its 4039 vertices"):
        load(real_data / "snap_edgelists" / "facebook_combined.txt.gz")

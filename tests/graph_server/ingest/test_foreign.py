"""Files of other tools are refused by name, with the way out."""

import json
import pickle
import zipfile
from pathlib import Path

import pytest

from common.errors import DatasetError
from tests.graph_server.datasets.folders import load

DGL_MAGIC = 0xDD2E4FF046B4A13F
TORCH_MAGIC = 0x1950A86A20F9469CFC6C


def archive(file: Path, *names: str) -> Path:
    with zipfile.ZipFile(file, "w") as written:
        for name in names:
            written.writestr(name, b"")
    return file


def file_of(folder: Path, content: bytes | str) -> Path:
    file = folder / "file"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (pickle.dumps(TORCH_MAGIC, protocol=2), "a file of torch"),
        (DGL_MAGIC.to_bytes(8, "little") + b"\2" + b"\0" * 20, "a file of DGL graphs"),
        (pickle.dumps({"x": [1]}), "a pickle"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"MATLAB 5.0 MAT-file" + b"\0" * 100, "a MATLAB file"),
        ("\ufeff<?xml version='1.0'?><graphml>", "an XML file"),
        (json.dumps({"features": [], "labels": [], "links": []}), "a WikiCS data.json"),
        (json.dumps({"directed": False, "nodes": [], "links": []}), "a GraphSAGE -G.json"),
        (json.dumps({"version": "gconstruct-v0.1", "nodes": [], "edges": []}), "a description for GraphStorm"),
    ],
)
def test_a_file_is_refused_by_name(tmp_path: Path, content: bytes | str, what: str):
    with pytest.raises(DatasetError) as error:
        load(file_of(tmp_path, content))
    assert error.value.what.startswith(f"{tmp_path / 'file'} is {what}")
    assert error.value.why
    assert error.value.fix


def test_a_torch_archive_says_how_to_export_it(tmp_path: Path):
    with pytest.raises(DatasetError, match="is a file of torch") as error:
        load(archive(tmp_path / "data.pt", "data/data.pkl", "data/version"))
    assert "can run any code" in error.value.why
    assert "numpy.savez('graph.npz', edge_index=data.edge_index" in error.value.fix
    with pytest.raises(DatasetError, match="is a folder of torch files"):
        load(tmp_path)


def test_an_excel_workbook(tmp_path: Path):
    with pytest.raises(DatasetError, match="is an Excel workbook"):
        load(archive(tmp_path / "graph.xlsx", "xl/workbook.xml"))


def test_folders_of_other_tools(tmp_path: Path):
    pyg = tmp_path / "pyg"
    (pyg / "raw").mkdir(parents=True)
    (pyg / "processed").mkdir()
    (pyg / "processed" / "data.pt").write_bytes(b"")
    with pytest.raises(DatasetError, match="is a folder that PyTorch Geometric made") as error:
        load(pyg)
    assert error.value.fix.startswith("give its folder raw/")
    parts = tmp_path / "parts"
    (parts / "part0").mkdir(parents=True)
    (parts / "part0" / "graph.dgl").write_bytes(b"")
    with pytest.raises(DatasetError, match="is a graph that DGL has partitioned"):
        load(parts)
    chunks = tmp_path / "chunks"
    chunks.mkdir()
    (chunks / "metadata.json").write_text(json.dumps({"graph_name": "g", "num_nodes_per_chunk": [[1]]}))
    with pytest.raises(DatasetError, match="is a graph in DGL's chunks"):
        load(chunks)


def test_json_of_another_kind_is_no_known_format(tmp_path: Path):
    for content in ('{"a": 1}', "{", "[" * 100_000):
        with pytest.raises(DatasetError, match="has no known format"):
            load(file_of(tmp_path, content))

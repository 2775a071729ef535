"""What fuzzing has found, one test each: files that once ended a reader in something else than an error of ours."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from common import plugins
from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import arrays, edge_list, gnn_benchmark, graphdata, parquet
from graph_server.ingest.detect import FORMATS, find_format
from graph_server.ingest.yaml_files import named_file
from tests.conformance import dataset_proofs as proofs
from tests.graph_server.datasets.folders import write_npz


def refusal(name: str, folder: Path, change: Callable[[Path], None]) -> DatasetError:
    """Of the format's example after a change."""
    module = plugins.load(FORMATS, name)
    path = proofs.example(module, folder / name)
    change(folder / name)
    with pytest.raises(DatasetError) as error:
        module.read(path, DatasetSpec(path=str(path), allow_pickle=True))
    return error.value


def renamed(file: Path, **others: np.ndarray | bytes) -> None:
    """The archive with other members in the place of some."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            other = others.get(name.removesuffix(".npy"), content)
            archive.writestr(name, other if isinstance(other, bytes) else npy(other))


def npy(array: np.ndarray) -> bytes:
    packed = io.BytesIO()
    np.save(packed, array, allow_pickle=False)
    return packed.getvalue()


def hollow(shape: str) -> bytes:
    """An array of rows that take no bytes."""
    header = f"{{'descr': '|S0', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header


def test_an_archive_whose_directory_is_damaged(tmp_path: Path):
    for place, byte in ((0, b"X"), (6, b"\xff")):
        proofs.example(graphdata, tmp_path / str(place))
        file = tmp_path / str(place) / "ring.npz"
        whole = bytearray(file.read_bytes())
        start = whole.rfind(b"PK\1\2") if place == 0 else whole.find(b"PK\1\2")
        whole[start + place : start + place + 1] = byte
        file.write_bytes(whole)
        with pytest.raises(DatasetError, match="has no known format: an archive with no files that can be listed"):
            find_format(DatasetSpec(path=str(file)), file)


def test_a_member_that_is_no_array(tmp_path: Path):
    error = refusal("arrays", tmp_path, lambda folder: renamed(folder / "ring.npz", x=b"no array"))
    assert "x is no array" in error.what


@pytest.mark.parametrize("shape", ["(2147483647,)", "(4, 9999999)"])
def test_rows_that_take_no_bytes(tmp_path: Path, shape: str):
    error = refusal("arrays", tmp_path / "a", lambda folder: renamed(folder / "ring.npz", y=hollow(shape)))
    assert "rows of no bytes" in error.what

    def labels(folder: Path) -> None:
        (folder / "labels.csv").unlink()
        (folder / "labels.npy").write_bytes(hollow(shape))

    assert "rows of no bytes" in refusal("edge_list", tmp_path / "b", labels).what


def test_weights_that_are_one_number(tmp_path: Path):
    module = plugins.load(FORMATS, "graphsaint")
    path = proofs.example(module, tmp_path / "saint")
    renamed(path / "adj_full.npz", data=np.array(2.0))
    assert module.read(path, DatasetSpec(path=str(path))).num_edges == 4


def test_labels_that_are_one_number(tmp_path: Path):
    one = npy(np.array(1))
    error = refusal("graphbolt", tmp_path, lambda folder: (folder / "data/train_labels.npy").write_bytes(one))
    assert "seeds and labels are" in error.what


@pytest.mark.parametrize("name", ["x" * 5000, "nodes\0.csv"])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str):
    with pytest.raises(DatasetError, match="cannot be the name of a file"):
        named_file(tmp_path / "meta.yaml", name)


def test_a_count_that_is_empty(tmp_path: Path):
    for name in ("num-edge-list", "num-node-list"):
        error = refusal(
            "ogb", tmp_path / name, lambda folder, name=name: (folder / f"raw/{name}.csv.gz").write_bytes(b"")
        )
        assert "it is empty; needed: one whole number" in error.what


def test_columns_whose_names_are_no_text(tmp_path: Path):
    file = tmp_path / "edges.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"source": [0], "target": [1]}), file)
    file.write_bytes(file.read_bytes().replace(b"target", b"\xff\xfeargt"))
    with pytest.raises(DatasetError, match="cannot be read"):
        parquet.read(file, DatasetSpec(path=str(file)))


def test_a_table_of_vertices_with_lists_and_no_rows(tmp_path: Path):
    lists = pyarrow.array([], pyarrow.list_(pyarrow.float64()))
    pyarrow.parquet.write_table(
        pyarrow.table({"id": pyarrow.array([], pyarrow.int64()), "x": lists}), tmp_path / "n.parquet"
    )
    pyarrow.parquet.write_table(pyarrow.table({"source": [0], "target": [1]}), tmp_path / "e.parquet")
    with pytest.raises(DatasetError, match="holds no vertex"):
        parquet.read(tmp_path, DatasetSpec(path=str(tmp_path)))


def test_kinds_of_vertices_that_are_no_numbers(tmp_path: Path):
    kinds = np.zeros(4, "V8")
    error = refusal("dgl_reddit", tmp_path, lambda folder: renamed(folder / "reddit_data.npz", node_types=kinds))
    assert "needed: one number each" in error.what


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"adj_indptr": np.array([0, 2, 1, 0])}, "indptr is not in order"),
        ({"adj_data": np.zeros(2, "V8")}, r"entries have dtype \|V8"),
    ],
)
def test_pieces_of_a_matrix_that_scipy_takes(tmp_path: Path, changes: dict, reason: str):
    file = write_npz(tmp_path / "a.npz", **changes)
    with pytest.raises(DatasetError, match=reason):
        gnn_benchmark.read(file, DatasetSpec(path=str(file)))


def test_vertices_that_are_announced_and_have_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("graph_server.ingest.memory.available_memory_bytes", lambda: 10**9)
    file = tmp_path / "a.npz"
    np.savez(file, edge_index=np.array([[0, 1, 2], [1, 2, 0]]), num_nodes=np.array(10**8))
    with pytest.raises(DatasetError, match=r"announces 100000000 vertices: without features they take 3\.2 GB"):
        arrays.read(file, DatasetSpec(path=str(file)))


def test_a_text_as_long_as_a_file(tmp_path: Path):
    """One such id, and each id of the table would take as much room."""
    rows = "".join(f"v{row},v{row + 1}\n" for row in range(2000))
    for number, end in enumerate(("x" * 70_000 + ",v1\n", '"' + "x" * 70_000 + '",v1\n')):
        (tmp_path / f"{number}.csv").write_text(rows + end)
        with pytest.raises(DatasetError, match=rf"{number}\.csv:2001: .*is an id of 70,000 characters"):
            edge_list.read(tmp_path / f"{number}.csv", DatasetSpec(path="x"))
    file = tmp_path / "edges.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"source": ["a", "x" * 70_000], "target": ["b", "c"]}), file)
    with pytest.raises(DatasetError, match=r"source holds a text of 70,000 bytes"):
        parquet.read(file, DatasetSpec(path=str(file)))

"""MatrixMarket files, whole and mangled."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import matrix_market
from tests.graph_server.datasets.folders import load

GENERAL = "%%MatrixMarket matrix coordinate real general\n"


def read(file: Path):
    return matrix_market.read(file, DatasetSpec(path=str(file)))


def write(folder: Path, content: str) -> Path:
    (folder / "graph.mtx").write_text(content)
    return folder / "graph.mtx"


def test_ids_count_from_1_and_isolated_vertices_are_kept(tmp_path: Path):
    raw = read(write(tmp_path, GENERAL + "% a comment\n\n5 5 2\n1 2 0.5\n4 1 -1e3\n"))
    assert raw.node_ids.tolist() == [1, 2, 3, 4, 5]
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 3], [1, 0])
    assert raw.undirected is None
    assert raw.notes == ("graph.mtx: entries have values: reported and not used",)


@pytest.mark.parametrize("kind", ["pattern symmetric", "PATTERN Symmetric", "pattern skew-symmetric"])
def test_one_triangle_goes_both_ways(tmp_path: Path, kind: str):
    raw = read(write(tmp_path, f"%%MatrixMarket matrix coordinate {kind}\r\n3 3 2\r\n2 1\r\n3 1\r\n"))
    assert (raw.num_edges, raw.undirected, raw.notes) == (2, True, ())


def test_a_complex_value_takes_two_columns(tmp_path: Path):
    assert read(write(tmp_path, "%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 1 0 1\n")).num_edges == 1


def test_no_entries_are_a_graph_without_edges(tmp_path: Path):
    raw = read(write(tmp_path, GENERAL + "3 3 0\n"))
    assert (raw.num_nodes, raw.num_edges, raw.sources.dtype) == (3, 0, np.int64)


def test_packed_files_are_opened(tmp_path: Path):
    file = tmp_path / "graph.mtx.gz"
    file.write_bytes(gzip.compress(matrix_market.example(tmp_path).read_bytes()))
    assert read(file).num_edges == 4


def test_a_job_says_what_a_matrix_lacks(tmp_path: Path):
    with pytest.raises(DatasetError, match="has no labels for its 4 vertices") as error:
        load(matrix_market.example(tmp_path))
    assert error.value.why == "ring.mtx is a matrix alone: it has no features and no labels"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("%%MatrixMarket matrix coordinate real\n", r":1: .* has 4 words, not 5"),
        ("%%MatrixMarket matrix coordinate mangled general\n", r":1: .* has the unknown word 'mangled'"),
        ("%%MatrixMarket matrix coordinate real hermitian\n", ":1: .* is hermitian and real"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", r"is a dense matrix \('array'\)"),
        (GENERAL, ":1: '' ends before the line of sizes"),
        (GENERAL + "3 3\n", ":2: '3 3' is not the line of sizes"),
        (GENERAL + "3 4 1\n1 1 1\n", ":2: the matrix has 3 rows and 4 columns"),
        (
            GENERAL + "99999999999999 99999999999999 1\n1 1 1\n",
            r":2 announces 99999999999999 vertices: .* 3200000\.0 GB",
        ),
        (GENERAL + "3 3 2\n1 1 1\n", "holds 1 entries, and line 2 announces 2"),
        (GENERAL + "3 3 1\n1 1\n", ":3: '1 1' has 2 fields, not 3"),
        (GENERAL + "3 3 2\n1 1 1\n\n3 4 1\n", ":5: '3 4' lies outside the matrix: rows and columns are 1 .. 3"),
        (GENERAL + "3 3 1\n0 1 1\n", ":3: '0 1' lies outside"),
        (GENERAL + "3 3 1\n1 zero 1\n", ":3: '1 zero' lies outside"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, content: str, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write(tmp_path, content))

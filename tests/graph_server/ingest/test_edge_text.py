"""Edges out of every text that users have: either the right edges, or an error that names the line."""

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import edge_list
from graph_server.ingest import edge_pieces, edge_text
from graph_server.ingest.edge_text import read_edges
from graph_server.ingest.raw_graph import RawGraph
from tests.examples import examples
from tests.graph_server.datasets.folders import write_folder


def edges_of(tmp_path: Path, content: str | bytes, name: str = "edges.csv"):
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_edges(file)


def pairs(table) -> list[tuple]:
    return list(zip(table.sources.tolist(), table.targets.tolist(), strict=True))


@pytest.mark.parametrize(
    "content",
    [
        "0,1\n2,3\n",
        "0\t1\n2\t3",
        "0 1\n2 3\n",
        "0,1\r\n2,3\r\n",
        "0,1\r2,3\r",
        b"\xef\xbb\xbf0,1\n2,3\n",
        "# a comment\n% another\n// a third\n0 1\n2 3\n",
        "0 1\n# in the middle\n2 3\n",
        "0 1\n\n   \n2 3\n\n",
        "0,1\n2\t3\n",
        "0, 1\n2 ,3\n",
        "  0   1  \n 2 3\n",
        '"0","1"\n"2","3"\n',
        "0.0,1.0\n2.0,3.0\n",
        "source,target\n0,1\n2,3\n",
        "FromNodeId\tToNodeId\n0\t1\n2\t3\n",
        "x y\n0 1\n2 3\n",
    ],
)
def test_every_dress_of_the_same_edges(tmp_path: Path, content: str | bytes):
    table = edges_of(tmp_path, content)
    assert pairs(table) == [(0, 1), (2, 3)]
    assert table.sources.dtype == np.int64


@pytest.mark.parametrize(
    "content",
    ["0 1 7\n2  3 7\n", "0 1 7\n\n2 3 7\n", "0 1 7\n2 3 7 \n", "0 1 7\n 2 3 7\n", "0 1 7\n2 3 7\n\n",
     "0 1 7.5\n2 3 -1e3\n"],
)  # fmt: skip
def test_gaps_between_numbers_hide_no_column(tmp_path: Path, content: str):
    assert pairs(edges_of(tmp_path, content)) == [(0, 1), (2, 3)]


@pytest.mark.parametrize("content", ["0 1 7\n2 3 \n", "0 1 7\n2  3\n", "0 1 7\n 2 3\n"])
def test_a_column_that_is_missing_is_no_gap(tmp_path: Path, content: str):
    with pytest.raises(DatasetError, match=r"edges\.csv:2: .*has 2 fields, not 3"):
        edges_of(tmp_path, content)


@pytest.mark.parametrize("line", ["0x10 1", "- 1", "1e3 1", "1.5 1"])
def test_what_is_no_whole_number_makes_texts_of_all(tmp_path: Path, line: str):
    assert pairs(edges_of(tmp_path, f"0 1\n{line}\n")) == [("0", "1"), tuple(line.split())]


def test_gzip_is_opened_whatever_the_name(tmp_path: Path):
    assert pairs(edges_of(tmp_path, gzip.compress(b"0 1\n2 3\n"))) == [(0, 1), (2, 3)]


def test_a_header_is_reported(tmp_path: Path):
    assert edges_of(tmp_path, "# who follows whom\nsrc,dst\n0,1\n").notes == (
        "edges.csv: line 2 was read as a header: src,dst",
    )


def test_named_columns_are_found_wherever_they_stand(tmp_path: Path):
    table = edges_of(tmp_path, "edge_id,target,weight,source\n7,1,0.5,0\n8,3,0.5,2\n")
    assert pairs(table) == [(0, 1), (2, 3)]
    assert "columns edge_id, weight ignored" in table.notes[1]


def test_a_third_column_is_reported_and_ignored(tmp_path: Path):
    table = edges_of(tmp_path, "0 1 5\n2 3 6\n")
    assert pairs(table) == [(0, 1), (2, 3)]
    assert table.notes == ("edges.csv: column 3 ignored; dataset.edge_weight names a column of weights",)
    assert pairs(edges_of(tmp_path, "0 1 0.5\n2 3 0.25\n")) == [(0, 1), (2, 3)]


def test_line_numbers_count_comments_and_blanks(tmp_path: Path):
    assert edges_of(tmp_path, "# one\n\n0 1\n\n2 3\n").lines.tolist() == [3, 5]
    assert edges_of(tmp_path, "# one\na,b\n\nc,d\n").lines.tolist() == [2, 4]


def test_text_ids(tmp_path: Path):
    assert pairs(edges_of(tmp_path, 'New York,"Paris, Texas"\nP12,007\n')) == [
        ("New York", "Paris, Texas"),
        ("P12", "007"),
    ]


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("0 1\n2\n", 2, "has 1 fields, not 2"),
        ("0 1\n2 3 4\n", 2, "has 3 fields, not 2"),
        ("0,1\n2,\n", 2, "lacks a vertex id"),
        ("0,1,5\n2,,3\n", 2, "lacks a vertex id"),
        ("0,1\n-9223372036854775809,2\n", 2, "is beyond 64 bits"),
        ("0,1\n9223372036854775808,2\n", 2, "is beyond 64 bits"),
        ("0,1\n" + "9" * 5000 + ",2\n", 2, "is beyond 64 bits"),
        ('0,1\n"2,3\n', 2, "has a broken quote"),
        (b"0,1\n\xff\xfe,2\n", 2, "is not UTF-8"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, content: str | bytes, line: int, reason: str):
    with pytest.raises(DatasetError, match=rf"edges\.csv:{line}: .*{reason}"):
        edges_of(tmp_path, content)


def test_utf_16_and_broken_gzip_are_refused(tmp_path: Path):
    with pytest.raises(DatasetError, match="is not UTF-8 text"):
        edges_of(tmp_path, "0,1\n".encode("utf-16"))
    with pytest.raises(DatasetError, match="cannot be read"):
        edges_of(tmp_path, gzip.compress(b"0 1\n" * 1000)[:-20])


def test_an_array_of_either_shape(tmp_path: Path):
    file = tmp_path / "edges.npy"
    for array in (np.array([[0, 2, 4], [1, 3, 5]]), np.array([[0, 1], [2, 3], [4, 5]], order="F")):
        np.save(file, array)
        assert pairs(read_edges(file)) == [(0, 1), (2, 3), (4, 5)]
    np.save(file, np.zeros((2, 2), np.int64))
    with pytest.raises(DatasetError, match="two edges as rows or as columns"):
        read_edges(file)
    np.save(file, np.zeros((3, 4), np.int64))
    with pytest.raises(DatasetError, match=r"has edges of shape \(3, 4\)"):
        read_edges(file)


@pytest.mark.parametrize(
    "value", [np.float32(16777216.0), np.float32(-16777216.0), np.float64(0.5), np.float64("nan"), np.uint64(2**63)]
)
def test_an_id_in_an_array_is_exact_or_refused(tmp_path: Path, value: np.generic):
    file = tmp_path / "edges.npy"
    np.save(file, np.array([[0, 1, value], [1, 2, 0]], dtype=value.dtype))
    with pytest.raises(DatasetError, match="at position 2 is no exact vertex id"):
        read_edges(file)


def test_whole_floats_in_an_array_are_ids(tmp_path: Path):
    file = tmp_path / "edges.npy"
    np.save(file, np.array([[0.0, 1.0, 12.0], [1.0, 2.0, 0.0]]))
    assert pairs(read_edges(file)) == [(0, 1), (1, 2), (12, 0)]


def test_an_array_of_objects_is_refused(tmp_path: Path):
    file = tmp_path / "edges.npy"
    np.save(file, np.array([[0, {}, 1], [1, 2, 0]], dtype=object))
    with pytest.raises(DatasetError, match="holds Python objects"):
        read_edges(file)


@given(
    rows=st.lists(st.tuples(st.integers(0, 10**17), st.integers(0, 10**17)), min_size=1, max_size=30),
    gaps=st.lists(st.sampled_from(["", "\n", "  \n"]), min_size=30, max_size=30),
    separator=st.sampled_from([" ", "\t", ",", "  "]),
    piece_bytes=st.integers(1, 64),
)
@settings(max_examples=examples(80))
def test_the_fast_and_the_careful_reader_agree(tmp_path_factory, rows, gaps, separator, piece_bytes):
    text = "".join(f"{gap}{source}{separator}{target}\n" for gap, (source, target) in zip(gaps, rows, strict=False))
    file = tmp_path_factory.getbasetemp() / "edges.txt"
    file.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_text, "_PIECE_BYTES", piece_bytes)
        fast, by_text = read_edges(file), read_edges(file, as_text=True)
        patch.setattr(edge_pieces, "_table", lambda body, place, as_text: None)
        by_numbers = read_edges(file)
        patch.setattr(edge_pieces, "_plain", lambda body, place: None)
        careful = read_edges(file)
    assert [(int(source), int(target)) for source, target in pairs(by_text)] == rows
    for table in (fast, by_numbers, careful):
        assert pairs(table) == rows
        assert table.lines.tolist() == by_text.lines.tolist()


LINES = st.lists(
    st.sampled_from(["0,1", "1 2", "2\t3", "", "# x", "a,b", "0", "0,1,2", '"0,1', "0.0,3.0", "1e3,2", "-1,0", "\x1e",
                     "source,target", "٣,١", "nan,1", "1\xa02", ","]),
    max_size=6,
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\x0b", "\u2028"])
CONTENTS = st.one_of(
    st.binary(max_size=80),
    st.text(max_size=40).map(str.encode),
    st.builds(lambda lines, end: end.join(lines).encode(), LINES, ENDS),
)


@given(content=CONTENTS)
@settings(max_examples=examples(300))
def test_any_bytes_give_a_graph_or_a_dataset_error(tmp_path_factory, content: bytes):
    result = graph_or_error(write_folder(tmp_path_factory.getbasetemp() / "fuzz", edges_csv=content))
    if isinstance(result, RawGraph):
        assert np.isin(result.sources, range(4)).all()
        assert np.isin(result.targets, range(4)).all()
    else:
        assert "edges.csv" in result.what


def graph_or_error(folder: Path) -> RawGraph | DatasetError:
    try:
        return edge_list.read(folder, DatasetSpec(path=str(folder)))
    except DatasetError as error:
        return error


@pytest.mark.parametrize(
    ("name", "edges", "vertices"),
    [("facebook_combined.txt.gz", 88234, 4039), ("as20graph.txt", 26467, 6474), ("karate.edgelist", 78, 34)],
)
def test_real_edge_lists(real_data: Path, name: str, edges: int, vertices: int):
    table = read_edges(real_data / "snap_edgelists" / name)
    assert len(table.sources) == edges
    assert len(np.union1d(table.sources, table.targets)) == vertices


def test_no_more_than_a_piece_is_held_as_python_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Text ids with comments between them take the careful way; as Python texts they would be 2 MB."""
    monkeypatch.setattr(edge_pieces, "_CAREFUL_BYTES", 1 << 11)
    monkeypatch.setattr(edge_text, "_PIECE_BYTES", 1 << 12)
    monkeypatch.setattr(edge_text, "_HEAD_BYTES", 1 << 12)
    num_edges = 8_000
    file = tmp_path / "edges.txt"
    file.write_text("".join(f"# {number}\n1{number % 7} {number}\n" for number in range(num_edges)))
    tracemalloc.start()
    table = read_edges(file)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(table.sources) == num_edges
    assert held < 3 * 8 * num_edges + 100_000
    assert peak < 2 * 3 * 8 * num_edges + 400_000

"""Packed files and texts of any length: told by content, bounded, in whole lines."""

import gzip
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DatasetError
from graph_server.ingest import streams, text
from graph_server.ingest.part_files import natural_order, part_files
from graph_server.ingest.streams import plain_suffix, read_unpacked
from graph_server.ingest.text import read_text_bytes, text_pieces
from tests.examples import examples


def written(folder: Path, content: bytes) -> Path:
    (folder / "file").write_bytes(content)
    return folder / "file"


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bz2", "lz4"])
def test_packing_is_told_by_content(tmp_path: Path, codec: str):
    file = tmp_path / "data.csv"
    with pyarrow.CompressedOutputStream(str(file), codec) as stream:
        stream.write(b"0,1\n" * 1000)
    assert read_unpacked(file) == b"0,1\n" * 1000
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(DatasetError, match=r"data\.csv cannot be read"):
        read_unpacked(file)


def test_several_members_are_one_file(tmp_path: Path):
    assert read_unpacked(written(tmp_path, gzip.compress(b"0,1\n") + gzip.compress(b"2,3\n"))) == b"0,1\n2,3\n"


def test_what_unpacks_beyond_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "available_memory_bytes", lambda: 1_000_000)
    file = written(tmp_path, gzip.compress(b"0" * 20_000_000))
    assert file.stat().st_size < 50_000
    with pytest.raises(DatasetError, match=r"unpacks to more than 0\.0 GB"):
        read_text_bytes(file)


@pytest.mark.parametrize(
    ("name", "suffix"), [("a.csv", ".csv"), ("a.csv.gz", ".csv"), ("b.1.TXT.zst", ".txt"), ("edges", ""), ("a.gz", "")]
)
def test_the_ending_below_the_packing(name: str, suffix: str):
    assert plain_suffix(Path(name)) == suffix


@given(content=st.text(alphabet="01, \r\n\ufeff", max_size=60), size=st.integers(1, 20))
@settings(max_examples=examples(150))
def test_pieces_are_whole_lines_and_together_the_file(tmp_path_factory, content: str, size: int):
    file = written(tmp_path_factory.getbasetemp(), content.encode())
    pieces = list(text_pieces(file, size + 2))  # the first piece holds a byte-order mark whole
    whole = content.encode().removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert b"".join(pieces) == whole
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(text, "LONGEST_LINE", 1 << 20)
    with pytest.raises(DatasetError, match="has a line of more than 1 MB"):
        list(text_pieces(written(tmp_path, b"1" * 3_000_000), 1 << 16))


def test_part_10_comes_after_part_2(tmp_path: Path):
    for name in ("part-10.csv", "part-2.csv", "a/part-1.csv", "_SUCCESS", ".part-2.csv.crc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [file.name for file in part_files(tmp_path)] == ["part-1.csv", "part-2.csv", "part-10.csv"]
    assert natural_order(Path("x²")) > natural_order(Path("x1"))

"""Tables of numbers in pieces: rows keep their number whatever the pieces."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from graph_server.ingest import number_text
from graph_server.ingest.number_lists import split_numbers
from graph_server.ingest.number_text import read_numbers, read_whole_numbers


def written(folder: Path, content: str) -> Path:
    (folder / "table.csv.gz").write_bytes(gzip.compress(content.encode()))
    return folder / "table.csv.gz"


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(number_text, "_BLOCK_BYTES", 1 << 10)


@pytest.mark.usefixtures("small_blocks")
def test_rows_are_counted_over_all_blocks(tmp_path: Path):
    rows = [f"{number},{number + 1}\n" for number in range(5000)]
    table = read_whole_numbers(written(tmp_path, "".join(rows)))
    assert table.tolist() == [[number, number + 1] for number in range(5000)]
    rows[4321] = "7,x\n"
    with pytest.raises(DatasetError, match=r"table\.csv\.gz: row 4322: .*invalid value 'x'"):
        read_whole_numbers(written(tmp_path, "".join(rows)))
    rows[4321] = "7,\n"
    with pytest.raises(DatasetError, match="row 4322: has an empty cell"):
        read_whole_numbers(written(tmp_path, "".join(rows)))
    rows[4321] = "7,-1e300\n"
    with pytest.raises(DatasetError, match=r"row 4322: holds -1e\+300, which is beyond float32"):
        read_numbers(written(tmp_path, "".join(rows)))


def test_missing_numbers_are_nan_and_an_empty_file_has_no_rows(tmp_path: Path):
    assert np.isnan(read_numbers(written(tmp_path, "1,\nnan,2\n"))).sum() == 2
    assert read_numbers(written(tmp_path, "\n")).shape == (0, 1)
    assert read_whole_numbers(written(tmp_path, "")).dtype == np.int64


def test_more_than_the_memory_holds_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(number_text, "available_memory_bytes", lambda: 1000)
    with pytest.raises(DatasetError, match="holds more numbers than the 0.0 GB that are free"):
        read_whole_numbers(written(tmp_path, "1,2\n" * 1000))


def test_lists_in_cells():
    values, lengths = split_numbers(["1, 2", "", "[3.5,-4e1]", "nan"], [2, 3, 4, 5], Path("nodes.csv"))
    assert lengths.tolist() == [2, 0, 2, 1]
    assert values[:4].tolist() == [1, 2, 3.5, -40]
    assert np.isnan(values[4])
    with pytest.raises(DatasetError, match=r"nodes\.csv:3: ' 2x' is not a number"):
        split_numbers(["1", "1, 2x"], [2, 3], Path("nodes.csv"))
    with pytest.raises(DatasetError, match=r"nodes\.csv:3"):
        split_numbers(["1", "1,,2"], [2, 3], Path("nodes.csv"))

"""What the benchmark of reading and cutting makes of its figures; a peer that is not there has none."""

from pathlib import Path

import pytest

from benchmarks import ingest
from benchmarks.ingest import LIMIT, Row, goals


def test_goals_compare_like_with_like():
    rows = [
        Row("read text", "dorylus", 100, 10**8, 9.0, 1, 2.0),
        Row("read text", "pandas", 100, 10**8, 1.0, 1, 4.0),
        Row("read text", "dorylus", 10, 10**7, 9.0, 1, 0.5),
        Row("read text", "pyg", 10, 10**7, 9.0, 1, 0.25),
        Row("read text", "dgl", 10, 10**7),
        Row(f"convert text within {LIMIT}", "dorylus", 100, 1, 1.0, 2_100_000_000),
        Row(f"convert parquet within {LIMIT}", "dorylus", 100, 1, 1.0, 1_900_000_000),
        Row(f"cut within {LIMIT}", "stream", 100, 1, 1.0, 1_500_000_000, share_cut=0.2),
        Row(f"cut within {LIMIT}", "hash", 100, 1, 1.0, 1, share_cut=0.8),
        Row("cut in memory", "stream", 10, 1, 1.0, 1, share_cut=0.3),
        Row("cut in memory", "metis", 10, 1),
    ]
    said = {name: (goal.value, goal.holds) for name, goal in goals(rows).items()}
    assert said == {
        "peak bytes of converting text": (2_100_000_000, False),
        "peak bytes of converting parquet": (1_900_000_000, True),
        "peak bytes of the streaming cut": (1_500_000_000, True),
        "edges cut, of those that chance cuts": (0.25, True),
        "edges cut, of those that METIS cuts": (None, False),
        "text, times pandas": (2.0, True),
        "text, times pyg": (0.5, False),
        "text, times dgl": (None, False),
    }


def test_a_small_one_is_measured_and_nobody_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ingest, "INTERVALS", 4)
    monkeypatch.setattr(ingest, "FEATURES", 2)

    def read_by(who: str, path: Path, _: Path, *, num_edges: int, what: str = "read text") -> Row:
        return Row(what, who, num_edges, path.stat().st_size)

    monkeypatch.setattr(ingest, "read_by", read_by)
    monkeypatch.setattr(ingest, "partition_by", lambda method, *_, **__: Row("cut", method, 1, 1))
    rows = ingest.measure(20_000, tmp_path / "no peers", tmp_path)
    assert [row.who for row in rows if row.what == "read text"] == ["dorylus", "pandas", "dorylus", "pyg", "dgl"]
    assert [row.who for row in rows if row.what == "read parquet"] == ["dorylus", "pandas"]
    assert rows[0].num_bytes > 20_000 * 4
    converted = [row for row in rows if row.what.startswith("convert")]
    assert [row.what for row in converted] == [
        f"convert text within {LIMIT}",
        f"convert parquet within {LIMIT}",
        "convert text in memory",
        "convert parquet in memory",
    ]
    assert all(row.seconds and row.peak_bytes for row in converted)
    assert not (tmp_path / "again.dorylus").exists()


def test_who_is_not_set_up_has_no_figure(tmp_path: Path):
    (tmp_path / "edges.txt").write_text("0 1\n")
    row = ingest.read_by("pyg", tmp_path / "edges.txt", tmp_path / "no peers", num_edges=1)
    assert (row.seconds, row.peak_bytes, row.speed) == (None, None, None)

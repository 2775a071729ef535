"""Links, measured for a moment."""

import pytest

from benchmarks.transport import LINKS, Link, Measured, goals_of, measure, rows_of


@pytest.mark.parametrize("secure", [False, True], ids=["ipc", "CURVE"])
@pytest.mark.parametrize("name", LINKS)
def test_every_link_bears_its_rows(name: str, secure: bool):
    small = Link(LINKS[name].listener, (30, 5), (20, 4) if LINKS[name].back[0] else (0, 0))
    found = measure(small, secure=secure, seconds=0.2)
    assert found.num_bytes > 0
    assert found.num_bytes % small.num_bytes == 0
    assert found.cpu_seconds > 0
    assert 0 < found.word_seconds < 10


def test_figures_are_per_second_and_per_gigabyte():
    measured = {("graph-graph", "ipc"): Measured(2.0, 400_000_000, 0.1, 5e-5)}
    (row,) = rows_of(measured)
    assert row["mb_per_second"] == pytest.approx(200)
    assert row["cpu_seconds_per_gb"] == pytest.approx(0.25)
    assert row["word_microseconds"] == pytest.approx(50)
    (goal,) = goals_of(measured).values()
    assert goal.holds

"""What the comparison of forecast and measured says of a run; the runs themselves are the benchmark's."""

from pathlib import Path

import pytest

from benchmarks.memory import DEFAULT, ROWS, Measured, Row, show
from local_cloud.plan.memory import Memory, ServerMemory

SERVER = ServerMemory(process=100, edges=20, tensors=30, tasks=10, weights=1, messages=2, reading=3)
FORECAST = Memory((SERVER, SERVER), parameter_server=50, num_parameter_servers=2, launcher=70, functions=4)


def test_a_forecast_may_be_a_little_above_and_never_below():
    assert FORECAST.here == 2 * 166 + 2 * 50 + 70 + 4 == 506
    for measured, holds in ((506, [True, True]), (520, [False, True]), (440, [True, True]), (430, [True, False])):
        found = Measured("row", ROWS["arxiv-gcn128"], FORECAST, measured)
        assert [goal.holds for goal in found.goals().values()] == holds


def test_a_run_that_failed_holds_no_goal():
    found = Measured("row", ROWS["arxiv-gcn128"], FORECAST, 506, why="took too long")
    assert [(goal.value, goal.holds) for goal in found.goals().values()] == [(None, False)] * 2


def test_the_largest_graph_is_made_on_demand_only():
    assert set(ROWS) - set(DEFAULT) == {"reddit-gcn128"}


def test_the_table_has_all_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    show([Measured("of cora's size", Row("cora", {}), FORECAST, 500)])
    out = capsys.readouterr().out
    assert "1.01" in out
    assert "of cora's size" in out

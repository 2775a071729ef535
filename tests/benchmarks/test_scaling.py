"""How exponents are found, and which runs they are found from."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.outcome import Outcome
from benchmarks.own_run import own_run
from benchmarks.scaling import QUICK_BASE, SERVERS, exponent, goals_of, points, rows_of, times_of

POINTS = points(QUICK_BASE, 32, (1, 2, 4))


def test_an_exponent_is_that_of_the_size():
    assert exponent({1: 1.0, 2: 2.0, 4: 4.0}) == pytest.approx(1)
    assert exponent({1: 1.0, 4: 16.0}) == pytest.approx(2)
    assert exponent({1: 1.0}) is None


def test_one_part_grows_at_a_time():
    grown = [p for p in POINTS if p.size == 4]
    assert [p.part for p in grown] == [SERVERS, "vertices", "edges", "features", "hidden"]
    by_part = {p.part: p for p in grown}
    assert by_part["vertices"].recipe == replace(QUICK_BASE, num_vertices=80_000)
    assert by_part["edges"].recipe == replace(QUICK_BASE, num_edges=800_000)
    assert by_part["features"].recipe == replace(QUICK_BASE, num_features=256)
    assert by_part["hidden"].settings["model.hidden_size"] == "128"
    assert by_part[SERVERS].settings["cluster.num_graph_servers"] == "4"


def test_what_grows_faster_than_the_graph_misses_its_goal():
    outcomes = [(p, Outcome(seconds=(float(p.size ** (2 if p.part == "edges" else 1)),))) for p in POINTS]
    assert times_of("edges", outcomes) == {1: 1.0, 2: 4.0, 4: 16.0}
    assert {name: goal.holds for name, goal in goals_of(outcomes).items()} == {
        "exponent of vertices": True,
        "exponent of edges": False,
        "exponent of features": True,
        "exponent of hidden": True,
    }
    assert rows_of(outcomes)[-1]["over_smallest"] == 4.0


def test_a_run_that_failed_is_no_figure():
    outcomes = [(POINTS[0], Outcome(seconds=(1.0,))), (POINTS[1], Outcome(why="took too long"))]
    assert rows_of(outcomes)[1]["over_smallest"] is None
    assert exponent(times_of(SERVERS, outcomes)) is None


@pytest.mark.cluster
def test_two_graph_servers_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    tiny = replace(QUICK_BASE, num_vertices=400, num_edges=2000)
    point = points(tiny, 4, (1, 2))[1]
    found = own_run(point.recipe, {**point.settings, "cut.num_intervals": "4"}, {}, num_epochs=3, limit=300)
    assert (found.why, len(found.seconds)) == ("", 3)

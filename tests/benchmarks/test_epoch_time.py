"""Rows, goals and tables of the comparison."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.epoch_time import Result, chosen, draw, goals_of, parser, rows_of
from benchmarks.outcome import Outcome, Rounds
from benchmarks.workloads import BEST_PYG, QUICK_NAMES, ROWS
from tests.architecture.tree import ROOT


def rounds(seconds: float, peak: int = 0) -> Rounds:
    return Rounds((Outcome(seconds=(9.0, 9.0, seconds), losses=(1.0,), peak_bytes=peak),))


def result(row: str, **by_name: Rounds) -> Result:
    return Result(ROWS[row], {name.replace("_", " "): found for name, found in by_name.items()})


def values(of: Result) -> dict[str, float | None]:
    return {name.partition(": ")[2]: goal.value for name, goal in of.goals().items()}


def test_goals_are_ratios_and_memory():
    of = result(
        "reddit-gcn128",
        dorylus=rounds(1.0, 2_000_000_000),
        dorylus_lambda=rounds(1.3),
        dgl=rounds(4.0, 3_000_000_000),
        pyg_csr=rounds(30.0),
        pyg_sparse=rounds(40.0),
    )
    found = values(of)
    assert found["dgl over dorylus"] == 4.0
    assert found[f"{BEST_PYG} over dorylus"] == 30.0
    assert found["dorylus lambda over dorylus"] == 1.3
    assert found["GB of dorylus"] == 2.0
    assert found["memory, dgl over dorylus"] == 1.5
    assert of.goals()["reddit-gcn128: dorylus lambda over dorylus"].holds


def test_without_its_peer_a_goal_does_not_hold():
    of = result("arxiv-gcn128", dorylus=rounds(0.2), dgl=Rounds((Outcome(why="not installed"),)))
    assert set(values(of).values()) == {None}
    assert not any(goal.holds for goal in of.goals().values())


def test_curves_that_differ_are_a_goal_that_is_missed():
    goals = goals_of([], {"gcn": {"dgl": 1e-6, "pyg": 0.1, "pyg sparse": None}})
    assert [goal.holds for goal in goals.values()] == [True, False, False]


def test_quick_has_the_rows_of_small_graphs():
    assert [row.name for row in chosen(parser().parse_args(["--quick"]))] == list(QUICK_NAMES)
    assert {name.partition("-")[0] for name in QUICK_NAMES} == {"arxiv", "small", "pubmed", "cora"}
    assert [row.name for row in chosen(parser().parse_args([]))] == list(ROWS)


def test_a_graph_of_any_size_has_no_goals():
    given = ["--nodes", "1000", "--edges", "8000", "--features", "5", "--classes", "3", "--model", "gat"]
    (row,) = chosen(parser().parse_args([*given, "--contestants", "dorylus"]))
    assert (row.recipe.num_vertices, row.recipe.num_edges, row.contestants) == (1000, 4000, ("dorylus",))
    assert row.wanted == ()


def test_rows_say_what_was_measured():
    of = result("cora-gcn", dorylus=rounds(0.5), dgl=Rounds((Outcome(why="not installed"),)))
    ours, dgl = rows_of([of])
    assert (ours["epoch_seconds"], ours["over_dorylus"], ours["why"]) == (0.5, 1.0, "")
    assert (dgl["epoch_seconds"], dgl["over_dorylus"], dgl["why"]) == (None, None, "not installed")


def test_rows_in_which_we_ran_are_drawn(tmp_path: Path):
    missing = result("cora-sage", dgl=rounds(1.0))
    draw([missing], tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()
    draw([result("cora-gcn", dorylus=rounds(0.25), dgl=rounds(1.0)), missing], tmp_path / "times.svg")
    assert "<svg" in (tmp_path / "times.svg").read_text()


@pytest.mark.cluster
def test_the_script_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On a tiny graph, with nobody to compare with."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    said = tmp_path / "said.json"
    size = ["--nodes", "400", "--edges", "3000", "--features", "8", "--classes", "3", "--hidden", "4"]
    command = [sys.executable, "benchmarks/epoch_time.py", "--quick", *size]
    nobody = ["--contestants", "dorylus", "dgl", "--peers", str(tmp_path / "none"), "--json", str(said)]
    done = subprocess.run([*command, *nobody], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "kernels of ours: blas" in done.stdout
    assert "not installed" in done.stdout
    found = json.loads(said.read_text())
    assert found["goals"]["same loss curve, gcn: dgl"] == {"value": None, "goal": 1e-3, "holds": False}
    assert [row["epoch_seconds"] is None for row in found["rows"]] == [False, True]


def test_every_row_has_what_its_goals_need():
    for row in ROWS.values():
        names = {*row.contestants, BEST_PYG}
        assert all({wanted.slow, wanted.quick} <= names for wanted in row.wanted)

"""Epochs until an accuracy is there, and what the table and the goals make of them."""

from pathlib import Path

import pytest

from benchmarks.convergence import Case, Result, Run, goals_of, table, train
from benchmarks.curves import Curve, plot
from tests.small_jobs import small_dataset, small_job

CASE = Case("Cora", "gcn", "cora", 60)
RISING = Curve((0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.0))


def result(**epochs: list[int | None]) -> Result:
    """By mode, `s0` for async s=0."""
    names = {"pipe": "pipe", "s0": "async s=0", "s1": "async s=1", "s2": "async s=2"}
    return Result(CASE, {names[mode]: [Run(e, Curve((), COUNTS)) for e in each] for mode, each in epochs.items()})


COUNTS = {"stale_0": 60, "stale_1": 30, "reads_ahead": 8, "reads_exact": 2, "tensor_tasks": 99}


def test_means_are_of_an_epoch_and_the_four_before_it():
    assert RISING.smoothed.tolist() == pytest.approx([0.4, 0.6, 0.76])
    assert RISING.best == pytest.approx(0.76)
    assert [RISING.epochs_until(t) for t in (0.1, 0.5, 0.75, 0.77)] == [5, 6, 7, None]


def test_nothing_is_reached_before_there_are_five():
    assert Curve((1.0,) * 4).epochs_until(0.5) is None
    assert Curve((1.0,) * 4).best == 0.0


def test_the_median_counts_what_never_got_there_as_endless():
    found = result(pipe=[10, 20, 30], s0=[20, None, 22], s1=[None, None, 5])
    assert (found.median("pipe"), found.median("async s=0"), found.median("async s=1")) == (20, 22, None)
    assert found.ratio("async s=0") == pytest.approx(1.1)
    assert found.ratio("async s=1") is None
    assert found.paired("async s=0") == pytest.approx(2.0), "2, never, 22 / 30"


def test_goals_are_ratios_to_pipe():
    goals = goals_of([result(pipe=[20], s0=[25], s1=[30], s2=[90])])
    assert {name: (goal.value, goal.holds) for name, goal in goals.items()} == {
        "Cora, gcn: async s=0 over pipe": (1.25, False),
        "Cora, gcn: async s=1 over pipe": (1.5, True),
    }


def test_the_table_says_epochs_ratios_and_ages():
    absent = Result(Case("PubMed", "gat", None, 9))
    lines = table([result(pipe=[20], s0=[20], s1=[30], s2=[None]), absent]).splitlines()
    ages = "8.0% / 2.0% / 60.0% / 30.0% / 0.0%"
    assert lines[2] == f"| Cora, gcn | 20 | 20 (1.00, 1.00) | 30 (1.50, 1.50) | not reached | {ages} |"
    assert lines[3] == "| PubMed, gat | no data | no data | no data | no data | 0.0% / 0.0% / 0.0% / 0.0% / 0.0% |"


@pytest.mark.parametrize("mode", ["sync", "pipe"])
def test_the_accuracy_is_of_the_training_forward_alone(mode: str, tmp_path: Path):
    keys = {"training.mode": mode, "training.num_epochs": 9, "training.eval_frequency": 0}
    curve = train(small_job(small_dataset(60, num_edges=200), tmp_path, keys), None)
    assert len(curve.accuracies) == 8  # the ninth is evaluated
    assert len(set(curve.accuracies)) > 1


def test_a_run_ends_when_it_reaches_its_target(tmp_path: Path):
    keys = {"training.num_epochs": 50, "training.eval_frequency": 0}
    curve = train(small_job(small_dataset(60, num_edges=200), tmp_path, keys), 0.01)
    assert curve.epochs_until(0.01) == 5
    assert len(curve.accuracies) < 10


def test_curves_are_drawn(tmp_path: Path):
    path = tmp_path / "curves.svg"
    plot({"Cora, gcn": dict.fromkeys(("pipe", "a", "b", "c"), RISING)}, 0.98, path)
    assert path.read_text().lstrip().startswith("<?xml")

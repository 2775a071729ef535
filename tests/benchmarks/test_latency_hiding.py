"""The bound, what is won back, and where the added latency lies."""

from pathlib import Path

import pytest

from benchmarks.latency_hiding import CASES, Result, goals_of, parser, rows_of, run_once
from benchmarks.stopwatch import Measured, Window
from tests.small_jobs import small_dataset, small_job

TASK = 0.01


def measured(epoch: float, processor: float = 1.4) -> Measured:
    return Measured(epoch=epoch, processor=processor, others=0.2, task=TASK, away=0.3, graph=0.1)


RUNS = {
    (0.0, "sync"): measured(0.8),
    (0.0, "async s=1"): measured(0.72, processor=1.3),
    (0.1, "sync"): measured(1.3),
    (0.1, "async s=1"): measured(0.78),
    (0.3, "sync"): measured(1.9),
}
RESULT = Result(CASES[0], RUNS, tasks_in_a_row=3, cores=2)


def test_the_bound_is_the_work_or_the_way():
    assert RESULT.bound(0.0) == pytest.approx(1.35 / 2)
    assert RESULT.bound(0.3) == pytest.approx(3 * (0.3 + TASK))
    assert RESULT.over_bound(0.0, "async s=1") == pytest.approx(0.72 / (1.35 / 2))
    assert RESULT.over_bound(0.3, "async s=1") is None


def test_what_is_won_back_is_a_share_of_what_latency_costs_sync():
    assert RESULT.won_back(0.1, "async s=1") == pytest.approx((1.3 - 0.78) / (1.3 - 0.8))
    assert RESULT.won_back(0.1, "sync") == 0
    assert RESULT.won_back(0.3, "async s=1") is None
    assert RESULT.won_back(0.0, "async s=1") is None


def test_a_goal_without_a_measurement_does_not_hold():
    goals = goals_of([RESULT], (0.0, 0.1, 0.3))
    assert [goal.holds for goal in goals.values()] == [True, False, False, True]
    assert list(goals)[1] == "dense, 0.7 s, 100 ms: async s=1 over the bound"


def test_rows_say_where_the_time_went():
    row = rows_of(RESULT)[0]
    assert row["seconds"] == {
        "epoch": 0.8, "processor": 1.4, "others": 0.2, "task": TASK,
        "away": 0.3, "graph": 0.1, "waiting": pytest.approx(0.4),
    }  # fmt: skip
    assert row["cores_busy"] == pytest.approx(1.4 / 0.8 / 2)


def test_modes_can_be_chosen():
    assert parser().parse_args(["--modes", "sync", "pipe"]).modes == ["sync", "pipe"]
    assert parser().parse_args([]).modes is None


def test_every_task_pays_the_latency_on_its_way(tmp_path: Path):
    """A lower bound, which holds on a machine however busy."""
    keys = {"backend.name": "lambda", "training.num_epochs": 4, "training.eval_frequency": 0, "training.mode": "sync"}
    job = small_job(small_dataset(60, num_edges=200), tmp_path, keys)
    found = run_once(job, 0.2, Window(before=1, measured=2, after=1))
    assert found.epoch >= 3 * 0.2
    assert found.away >= 3 * 0.2
    assert found.processor > 0

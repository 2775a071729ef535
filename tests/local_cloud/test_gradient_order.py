"""Epochs that must end in the order of intervals: all roles together, the same bits, and nobody waits for ever."""

from pathlib import Path

import pytest

from common.trace import StepRecord
from local_cloud.in_process import run_in_process
from local_cloud.run_result import Watch
from tests.local_cloud.jobs import MY_GRAPH
from tests.local_cloud.test_payload import prepared

NUM_EPOCHS, LAST = 3, "∇ApplyVertex1+0"


def run(cache_dir: Path, mode: str) -> tuple[dict[str, bytes], list[StepRecord]]:
    records: list[StepRecord] = []
    settings = {"dataset.directed": "false", "training.mode": mode, "training.num_epochs": str(NUM_EPOCHS)}
    result = run_in_process(prepared(MY_GRAPH, settings, cache_dir), Watch(record=records.append))
    return {name: array.tobytes() for name, array in result.last.items()}, records


def ends(records: list[StepRecord]) -> list[tuple[int, int]]:
    """(epoch, interval) in the order in which the last tasks were done."""
    return [(int(record.pass_.split()[1]), record.interval) for record in records if record.step == LAST]


def in_line(num_epochs: int) -> list[tuple[int, int]]:
    return [(epoch, interval) for epoch in range(1, num_epochs + 1) for interval in range(12)]


def test_one_after_the_other_makes_the_same_weights(cache_dir: Path, monkeypatch: pytest.MonkeyPatch):
    free, _ = run(cache_dir, "pipe")
    monkeypatch.setattr("parameter_server.assemble.window_of", lambda *_: 1)
    weights, records = run(cache_dir, "pipe")
    assert ends(records) == in_line(NUM_EPOCHS)
    assert weights == free


def test_async_keeps_the_line_too(cache_dir: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("parameter_server.assemble.window_of", lambda *_: 1)
    assert ends(run(cache_dir, "async")[1]) == in_line(NUM_EPOCHS)

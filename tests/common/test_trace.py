"""The trace keeps two kinds of records apart, and every line whole."""

from pathlib import Path

import pytest

from common.trace import LeaseDecision, StepRecord, TraceFile, lease_decisions, read

STEP = StepRecord(
    pass_="train 1",
    step="Gather 0",
    position=0,
    interval=3,
    server=1,
    created=0.5,
    started=0.5,
    ended=0.75,
    received=1.0,
)
DECISION = LeaseDecision(at=2.5, server=1, before=12, target=6, reason="fewer: slots are 20% full", busy=0.2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with TraceFile(tmp_path / "trace.jsonl") as trace:
        for record in (STEP, DECISION, STEP):
            trace.write(record)
    return tmp_path / "trace.jsonl"


def test_steps_are_read_alone(path: Path):
    assert read(path) == [STEP, STEP]


def test_decisions_are_read_alone(path: Path):
    assert lease_decisions(path) == [DECISION]


def test_a_line_says_which_kind_it_is(path: Path):
    lines = path.read_text().splitlines()
    assert ['"record":"lease_decision"' in line for line in lines] == [False, True, False]


def test_a_trace_is_continued(path: Path):
    with TraceFile(path) as trace:
        trace.write(DECISION)
    assert len(read(path)) == len(lease_decisions(path)) == 2

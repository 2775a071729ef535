"""What a goal says."""

import json
from pathlib import Path

import pytest

from benchmarks.goals import Goal, write


@pytest.mark.parametrize(
    ("goal", "holds"),
    [
        (Goal(81.0, 81.0), True),
        (Goal(80.9, 81.0), False),
        (Goal(1.15, 1.15, at_most=True), True),
        (Goal(1.16, 1.15, at_most=True), False),
        (Goal(None, 81.0), False),
        (Goal(None, 1.15, at_most=True), False),
    ],
)
def test_a_goal_holds_at_its_bound_and_never_without_a_value(goal: Goal, holds: bool):
    assert goal.holds is holds


def test_the_file_says_value_goal_and_whether_it_holds(tmp_path: Path):
    write(tmp_path / "out.json", {"quick": Goal(1.2, 1.15, at_most=True)}, [{"mode": "pipe"}])
    said = json.loads((tmp_path / "out.json").read_text())
    assert said == {"goals": {"quick": {"value": 1.2, "goal": 1.15, "holds": False}}, "rows": [{"mode": "pipe"}]}

"""What every benchmark shares: its two flags, and how it says which goals hold."""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Goal:
    """At least `goal`, or at most. `value` is None where it could not be measured; then the goal does not hold."""

    value: float | None
    goal: float
    at_most: bool = False

    @property
    def holds(self) -> bool:
        if self.value is None:
            return False
        return self.value <= self.goal if self.at_most else self.value >= self.goal


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a minute or two instead of the whole")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    return parser


def write(path: Path | None, goals: dict[str, Goal], rows: list[dict[str, object]]) -> None:
    """JSON with `goals`: name -> {value, goal, holds}, and the table's rows."""
    if path is None:
        return
    said = {name: {"value": g.value, "goal": g.goal, "holds": g.holds} for name, g in goals.items()}
    path.write_text(json.dumps({"goals": said, "rows": rows}, indent=1) + "\n")

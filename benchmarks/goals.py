"""What every benchmark shares: its two flags, and how it says which goals hold."""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Goal:
    """`value` is None where it could not be measured; then the goal does not hold."""

    value: float | None
    goal: float

    @property
    def holds(self) -> bool:
        return self.value is not None and self.value >= self.goal


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a minute or two instead of the whole")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    return parser


def write(path: Path | None, goals: dict[str, Goal], rows: list[dict[str, object]]) -> None:
    """JSON with `goals`: name -> {value, goal, holds}, and the table's rows."""
    if path is None:
        return
    said = {name: {**asdict(goal), "holds": goal.holds} for name, goal in goals.items()}
    path.write_text(json.dumps({"goals": said, "rows": rows}, indent=1) + "\n")

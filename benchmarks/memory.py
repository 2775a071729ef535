"""Memory of a training: the forecast of `dorylus plan` and `dorylus train` beside what all processes took.

    python benchmarks/memory.py [--quick] [--json FILE] [--rows ROW ...]

Measured is the largest sum of the processes' proportional set sizes, looked at five times a second, from the command's
start to its end. The forecast must not be below it, and not more than 15 % above. Each run is the whole product:
`dorylus train`, every role a process, on a graph folder that was made before.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.goals import Goal, arguments, write
from benchmarks.graphs import Recipe
from benchmarks.modes import Settings
from benchmarks.own_run import NO_EVALUATION, flags_of, resolved
from benchmarks.sizes import SIZES, graph_folder, num_edges
from benchmarks.watched import environment, run_watched
from graph_server.graph.folder_reader import GraphFolder
from local_cloud.plan.memory import Memory
from local_cloud.plan.memory_check import memory_here
from local_cloud.prepare import job_of_folder

SLACK = 1.15
WIDTH = 140
SECONDS_BETWEEN = 0.2
NUM_EPOCHS, QUICK_EPOCHS = 6, 3
GCN, SAGE, GAT = ({"model.name": name, "model.hidden_size": size} for name, size in
                  (("gcn", "128"), ("graphsage", "128"), ("gat", "8")))  # fmt: skip
MIXED = {"training.precision": "mixed"}


@dataclass(frozen=True)
class Row:
    size: str
    settings: Settings
    is_quick: bool = False

    @property
    def recipe(self) -> Recipe:
        return SIZES[self.size]


ROWS: Mapping[str, Row] = {
    "arxiv-gcn128": Row("arxiv", GCN, is_quick=True),
    "arxiv-gcn128-mixed": Row("arxiv", {**GCN, **MIXED}),
    "arxiv-sage128": Row("arxiv", SAGE, is_quick=True),
    "arxiv-sage128-mixed": Row("arxiv", {**SAGE, **MIXED}),
    "arxiv-gat8x8": Row("arxiv", GAT, is_quick=True),
    "arxiv-gcn128-2-servers": Row("arxiv", {**GCN, "cluster.num_graph_servers": "2"}),
    "arxiv-gcn128-lambda": Row("arxiv", {**GCN, "backend.name": "lambda"}),
    "reddit-gcn128": Row("reddit", GCN),
}
DEFAULT = tuple(name for name in ROWS if name != "reddit-gcn128")
"""The largest graph takes minutes to make."""


@dataclass(frozen=True)
class Measured:
    """Bytes. why: it did not end well."""

    name: str
    row: Row
    forecast: Memory
    measured: int
    why: str = ""

    @property
    def over(self) -> float | None:
        return self.forecast.here / self.measured if not self.why else None

    def goals(self) -> dict[str, Goal]:
        return {
            f"{self.name}: forecast over measured, at least": Goal(self.over, 1.0),
            f"{self.name}: forecast over measured, at most": Goal(self.over, SLACK, at_most=True),
        }

    def figures(self) -> dict[str, object]:
        vertices, edges, parts = self.row.recipe.num_vertices, num_edges(self.row.recipe), self.forecast.parts
        return {
            "row": self.name,
            "forecast": self.forecast.here,
            "measured": self.measured,
            "over": self.over,
            "parts": parts,
            "tensors_per_vertex": parts["tensors"] / vertices,
            "edges_per_edge": parts["edges"] / edges,
            "why": self.why,
        }


def measure(name: str, row: Row, num_epochs: int) -> Measured:
    settings = {**row.settings, **NO_EVALUATION, "training.num_epochs": str(num_epochs)}
    spec = resolved(row.recipe, settings)
    folder = graph_folder(row.recipe, spec)
    forecast = memory_here(job_of_folder(spec, GraphFolder.open(folder)))
    with tempfile.TemporaryDirectory() as place:
        command = [str(Path(sys.executable).with_name("dorylus")), "train", str(folder), "--quiet"]
        flags = ["--run-dir", str(Path(place) / "run"), *flags_of(settings)]
        done = run_watched([*command, *flags], environment(), seconds=1800, between=SECONDS_BETWEEN)
    return Measured(name, row, forecast, done.peak_bytes, "" if done.code == 0 else done.why)


def show(found: Sequence[Measured]) -> None:
    table = Table("row", "forecast", "measured", "over", "tensors", "edges", "tasks", "other data", "processes")
    for each in found:
        parts = each.forecast.parts
        named = [parts.pop(part) for part in ("tensors", "edges", "tasks", "processes")]
        numbers = (each.forecast.here, each.measured), (*named[:3], sum(parts.values()), named[3])
        over = each.why or f"{each.over:.2f}"
        table.add_row(each.name, *map(_mb, numbers[0]), over, *map(_mb, numbers[1]))
    console = Console(width=WIDTH)
    console.print(table)
    each_of = Table("row", "tensors, bytes a vertex", "edges, bytes an edge")
    for each in found:
        figures = each.figures()
        each_of.add_row(each.name, f"{figures['tensors_per_vertex']:.0f}", f"{figures['edges_per_edge']:.1f}")
    console.print(each_of)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def main() -> None:
    parser = arguments("Memory of a training: forecast and measured.")
    parser.add_argument("--rows", nargs="+", choices=ROWS, metavar="ROW", help=f"of {', '.join(ROWS)}")
    given = parser.parse_args()
    chosen = given.rows or [name for name in DEFAULT if ROWS[name].is_quick or not given.quick]
    found: list[Measured] = []
    for name in chosen:
        found.append(measure(name, ROWS[name], QUICK_EPOCHS if given.quick else NUM_EPOCHS))
        goals = {goal: of for each in found for goal, of in each.goals().items()}
        write(given.json, goals, [each.figures() for each in found])
    show(found)


if __name__ == "__main__":
    main()

"""How an epoch's cost grows: with 1, 2, 4 graph servers on one graph, and as vertices, edges, features, hidden double.

    python benchmarks/scaling.py [--quick] [--json FILE] [--only PART ...]

`dorylus train` as anybody would run it, GCN, pipe, evaluation off. The graph servers share the cores of this machine:
more of them cannot be quicker here, and what is seen is what it costs that rows travel. The exponent of a part is that
of its size in the time of an epoch, from the smallest to the largest; goals: none is above 1.15, for nothing grows
faster than the graph does.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from benchmarks.goals import Goal, arguments, write
from benchmarks.graphs import Recipe
from benchmarks.modes import Settings
from benchmarks.outcome import Outcome
from benchmarks.own_run import own_run

LINEAR = 1.15
WIDTH = 110
SERVERS = "graph servers"
BASE = Recipe("blocks", 100_000, 1_000_000, 128, 16, train=0.5)
QUICK_BASE = Recipe("blocks", 20_000, 200_000, 64, 16, train=0.5)
HIDDEN, QUICK_HIDDEN = 64, 32
NUM_INTERVALS = 16
"""The same in all runs: each step's overhead is a constant, and no part of what grows."""
EPOCHS, QUICK_EPOCHS, LIMIT = 10, 6, 1800.0


@dataclass(frozen=True)
class Point:
    """One run. size: of the part that grows, in times of its smallest."""

    part: str
    size: int
    recipe: Recipe
    settings: Settings


def points(base: Recipe, hidden: int, sizes: Sequence[int]) -> list[Point]:
    """The smallest is the same for all parts, and stands once, as one graph server."""

    def point(part: str, size: int, recipe: Recipe, *, width: int = hidden, servers: int = 1) -> Point:
        settings = {
            "model.name": "gcn",
            "model.hidden_size": str(width),
            "cut.num_intervals": str(NUM_INTERVALS),
            "cluster.num_graph_servers": str(servers),
        }
        return Point(part, size, recipe, settings)

    found = [point(SERVERS, 1, base)]
    for size in sizes[1:]:
        found += [
            point(SERVERS, size, base, servers=size),
            point("vertices", size, replace(base, num_vertices=size * base.num_vertices)),
            point("edges", size, replace(base, num_edges=size * base.num_edges)),
            point("features", size, replace(base, num_features=size * base.num_features)),
            point("hidden", size, base, width=size * hidden),
        ]
    return found


def exponent(times: Mapping[int, float]) -> float | None:
    """Of the size in the time, by size: 1 where twice the size takes twice as long. None: too few are known."""
    if len(times) < 2:
        return None
    smallest, largest = min(times), max(times)
    return math.log(times[largest] / times[smallest]) / math.log(largest / smallest)


def times_of(part: str, outcomes: Sequence[tuple[Point, Outcome]]) -> dict[int, float]:
    """Seconds per epoch by size."""
    return {p.size: o.steady for p, o in outcomes if o.seconds and (p.part == part or p.size == 1)}


def parts(outcomes: Sequence[tuple[Point, Outcome]]) -> list[str]:
    return list(dict.fromkeys(point.part for point, _ in outcomes))


def goals_of(outcomes: Sequence[tuple[Point, Outcome]]) -> dict[str, Goal]:
    growing = [part for part in parts(outcomes) if part != SERVERS]
    return {f"exponent of {part}": Goal(exponent(times_of(part, outcomes)), LINEAR, at_most=True) for part in growing}


def rows_of(outcomes: Sequence[tuple[Point, Outcome]]) -> list[dict[str, object]]:
    first = times_of(SERVERS, outcomes).get(1)
    return [
        {
            "part": point.part,
            "size": point.size,
            "epoch_seconds": outcome.steady if outcome.seconds else None,
            "over_smallest": outcome.steady / first if outcome.seconds and first else None,
            "peak_bytes": outcome.peak_bytes,
            "others": outcome.others,
            "why": outcome.why,
        }
        for point, outcome in outcomes
    ]


def show(outcomes: Sequence[tuple[Point, Outcome]]) -> None:
    table = Table(title=f"GCN, {NUM_INTERVALS} intervals, {os.cpu_count()} cores")
    for column in ("part", "times", "ms per epoch", "times the smallest", "exponent", "peak GB", "others"):
        table.add_column(column, justify="left" if column == "part" else "right")
    for part in parts(outcomes):
        of_part = [row for row in rows_of(outcomes) if row["part"] == part]
        grown = exponent(times_of(part, outcomes))
        for row in of_part:
            shown = "" if row is not of_part[-1] or grown is None or part == SERVERS else f"{grown:.2f}"
            table.add_row(part, str(row["size"]), *_cells(row, shown))
    Console(width=WIDTH).print(table)


def _cells(row: Mapping[str, object], shown: str) -> tuple[str, ...]:
    seconds, over, peak, others = (row[n] for n in ("epoch_seconds", "over_smallest", "peak_bytes", "others"))
    if not isinstance(seconds, float) or not isinstance(over, float):
        return (str(row["why"]), "", "", "", "")
    return f"{1000 * seconds:.1f}", f"{over:.2f}", shown, f"{float(str(peak)) / 1e9:.2f}", f"{float(str(others)):.0%}"


def main() -> None:
    parser = arguments("How an epoch's cost grows.")
    names = (SERVERS, "vertices", "edges", "features", "hidden")
    parser.add_argument("--only", nargs="+", choices=names, metavar="PART", help=f"of {', '.join(names)}")
    given = parser.parse_args()
    base, hidden = (QUICK_BASE, QUICK_HIDDEN) if given.quick else (BASE, HIDDEN)
    chosen = points(base, hidden, (1, 2) if given.quick else (1, 2, 4))
    outcomes: list[tuple[Point, Outcome]] = []
    for point in chosen:
        if given.only and point.size > 1 and point.part not in given.only:
            continue
        epochs = QUICK_EPOCHS if given.quick else EPOCHS
        outcomes.append((point, own_run(point.recipe, point.settings, {}, num_epochs=epochs, limit=LIMIT)))
        write(given.json, goals_of(outcomes), rows_of(outcomes))
    show(outcomes)


if __name__ == "__main__":
    main()

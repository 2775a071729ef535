"""How much of the functions' latency each mode hides.

    python benchmarks/latency_hiding.py [--quick] [--json FILE] [--modes MODE ...] [--graphs GRAPH ...]

A latency L is added to each tensor task's way between graph server and function, half of it in either direction, and to
nothing else; functions are warm before the measurement, and all intervals can be away at once. An epoch can not be
shorter than

    bound = max(W, k (L + t))

W = processor seconds of all roles per epoch at L = 0 over the cores, t = arithmetic of one task (of both the median of
the modes, which all do the same work), k = tensor tasks in a row per epoch.

Goals: async with staleness 1 is within 1.15 of the bound at every L, and at 100 ms wins back at least 70 % of what the
latency costs `sync`.
"""

import argparse
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.goals import Goal, arguments, write
from benchmarks.graphs import Recipe
from benchmarks.graphs import write as write_graph
from benchmarks.modes import ASYNC, MODES, generated_graphs, prepared, with_settings
from benchmarks.stopwatch import Measured, Stopwatch, Window
from common.role_start import Weather
from common.saga.program import Kind
from common.wire.pace import Shaping
from graph_server.role import SLOTS
from local_cloud.cluster import ClusterOptions, run_cluster
from local_cloud.prepare import PreparedJob
from local_cloud.run_folder import new_job_id
from local_cloud.run_result import Watch

WITHIN, WON_BACK = 1.15, 0.7
RATED, LATENCY = ASYNC[1], 0.1
"""The mode and the latency, in seconds, that goals are about."""
WINDOW, QUICK_WINDOW = Window(before=2, measured=6, after=3), Window(before=2, measured=4, after=3)
LATENCIES, QUICK_LATENCIES = (0.0, 0.05, LATENCY, 0.2), (0.0, LATENCY)
QUICK_MODES = ("sync", "pipe", RATED)
NUM_INTERVALS = 32


@dataclass(frozen=True)
class Case:
    """A graph; its work per epoch on two cores is in its name."""

    name: str
    recipe: Recipe


SMALL, LARGE = (60_000, 1_200_000), (170_000, 3_400_000)
"""Vertices and undirected edges."""
CASES = (
    Case("dense, 0.7 s", Recipe("random", *SMALL, num_features=256, num_classes=32)),
    Case("local, 0.7 s", Recipe("local", *SMALL, num_features=256, num_classes=32, inside=0.9)),
    Case("dense, 2 s", Recipe("random", *LARGE, num_features=256, num_classes=32)),
    Case("local, 2 s", Recipe("local", *LARGE, num_features=256, num_classes=32, inside=0.9)),
)
SETTINGS: Mapping[str, str] = {
    "model.name": "gcn",
    "model.hidden_size": "128",
    "cut.num_intervals": str(NUM_INTERVALS),
    "cut.method": "range",
    "backend.name": "lambda",
    "backend.min_lambdas": str(NUM_INTERVALS // SLOTS),
    "backend.lease_max_tasks": "100000",
    "training.eval_frequency": "0",
}

WIDTH = 110
"""Of the table, in characters."""
SECONDS = ("epoch", "processor", "others", "task", "away", "graph", "waiting")
Runs = dict[tuple[float, str], Measured]
"""By latency in seconds and mode."""


@dataclass(frozen=True)
class Result:
    """Of one graph. tasks_in_a_row: k; cores: of this machine."""

    case: Case
    runs: Runs
    tasks_in_a_row: int
    cores: int

    def bound(self, latency: float) -> float:
        at_zero = [measured for (at, _), measured in self.runs.items() if at == 0]
        work = statistics.median(m.processor for m in at_zero) / self.cores
        return max(work, self.tasks_in_a_row * (latency + statistics.median(m.task for m in at_zero)))

    def over_bound(self, latency: float, mode: str) -> float | None:
        run = self.runs.get((latency, mode))
        return None if run is None else run.epoch / self.bound(latency)

    def won_back(self, latency: float, mode: str) -> float | None:
        """The share of what latency costs sync that this mode does not pay."""
        run, slow, quick = (self.runs.get(key) for key in ((latency, mode), (latency, "sync"), (0.0, "sync")))
        if run is None or slow is None or quick is None or latency == 0:
            return None
        return (slow.epoch - run.epoch) / (slow.epoch - quick.epoch)


def measure(case: Case, latencies: Sequence[float], modes: Sequence[str], window: Window) -> Result:
    path = str(write_graph(case.recipe, generated_graphs()))
    settings = {**SETTINGS, "training.num_epochs": str(window.num_epochs)}
    job, runs = prepared(path, settings), Runs()
    for latency in latencies:
        for mode in modes:
            of_mode = with_settings(job, path, {**settings, **MODES[mode]})
            runs[latency, mode] = run_once(of_mode, latency, window)
            epoch = runs[latency, mode].epoch
            Console(stderr=True).print(f"{case.name}: {mode} at {1000 * latency:.0f} ms: {epoch:.2f} s per epoch")
    tasks_in_a_row = sum(step.kind is Kind.APPLY for step in job.programs.train.steps)
    return Result(case, runs, tasks_in_a_row, os.cpu_count() or 1)


def run_once(job: PreparedJob, latency: float, window: Window) -> Measured:
    stopwatch = Stopwatch(window)
    options = ClusterOptions(
        concurrency=-(-job.num_intervals // SLOTS),
        # Of the graph server alone: a function's way to the parameter servers is as it was.
        graph_weather=Weather(shaping={"lambda": Shaping(latency_seconds=latency / 2)}),
    )
    watch = Watch(on_epoch=stopwatch.epoch_ended, record=stopwatch.record)
    result = run_cluster(job, new_job_id("latency"), watch, options)
    return stopwatch.read(job.num_intervals, result.totals.counts)


def goals_of(results: Sequence[Result], latencies: Sequence[float]) -> dict[str, Goal]:
    goals = {}
    for result in results:
        for latency in latencies:
            name = f"{result.case.name}, {1000 * latency:.0f} ms: {RATED} over the bound"
            goals[name] = Goal(result.over_bound(latency, RATED), WITHIN, at_most=True)
        name = f"{result.case.name}, {1000 * LATENCY:.0f} ms: {RATED} wins back"
        goals[name] = Goal(result.won_back(LATENCY, RATED), WON_BACK)
    return goals


def rows_of(result: Result) -> list[dict[str, object]]:
    """What the table shows, and more."""
    return [
        {
            "graph": result.case.name,
            "latency_ms": 1000 * latency,
            "mode": mode,
            "seconds": {name: getattr(measured, name) for name in SECONDS},
            "bound": result.bound(latency),
            "over_bound": result.over_bound(latency, mode),
            "won_back": result.won_back(latency, mode),
            "cores_busy": measured.processor / measured.epoch / result.cores,
            "counts": dict(measured.counts),
        }
        for (latency, mode), measured in result.runs.items()
    ]


def show(result: Result) -> None:
    """One table: a row per latency and mode."""
    table = Table(title=f"{result.case.name}: seconds per epoch, k = {result.tasks_in_a_row}, {result.cores} cores")
    columns = ("L ms", "mode", "epoch", "bound", "over it", "won back", "cores", "others", "away", "graph", "waiting")
    for column in columns:
        table.add_column(column, justify="left" if column == "mode" else "right", no_wrap=True)
    for (latency, mode), m in result.runs.items():
        won_back, over = result.won_back(latency, mode), result.over_bound(latency, mode)
        table.add_row(
            f"{1000 * latency:.0f}",
            mode,
            *(f"{number:.2f}" for number in (m.epoch, result.bound(latency), over)),
            "" if won_back is None else f"{won_back:.0%}",
            *(f"{seconds / m.epoch / result.cores:.0%}" for seconds in (m.processor, m.others)),
            *(f"{seconds:.2f}" for seconds in (m.away, m.graph, m.waiting)),
        )
    Console(width=WIDTH).print(table)


def parser() -> argparse.ArgumentParser:
    made = arguments("Latency hiding on the local Lambda service.")
    made.add_argument("--modes", nargs="+", choices=MODES, metavar="MODE", help="of all, or of --quick")
    names = [case.name for case in CASES]
    made.add_argument("--graphs", nargs="+", choices=names, metavar="GRAPH", help=f"of {', '.join(names)}")
    return made


def main() -> None:
    given = parser().parse_args()
    latencies, window = (QUICK_LATENCIES, QUICK_WINDOW) if given.quick else (LATENCIES, WINDOW)
    modes = given.modes or (QUICK_MODES if given.quick else list(MODES))
    cases = [case for case in CASES if case.name in (given.graphs or [CASES[0].name if given.quick else case.name])]
    results: list[Result] = []
    for case in cases:
        results.append(measure(case, latencies, modes, window))
        show(results[-1])
        rows = [row for result in results for row in rows_of(result)]
        write(given.json, goals_of(results, latencies), rows)


if __name__ == "__main__":
    main()

"""How many more epochs staleness costs: epochs until the valid accuracy reaches 98 % of pipe's best.

    python benchmarks/convergence.py [--data FOLDER] [--only WORD ...] [--unpredicted] [--jobs N] [--quick]
                                     [--json FILE] [--plot FILE]

The accuracy is that of the training's own forward, dropout on, mean of five epochs: the same in every mode, and no
evaluation interrupts a run. Pipe runs to its end and sets the target, seed by seed; the others run until they reach it.
Three graph servers in one process, and every message between roles is late by a random time: without that, intervals
would walk almost in step and read almost nothing stale. What they read is told beside the epochs.

Median of five seeds; beside its ratio to pipe's median, the median of the seeds' own ratios. Goals, on the former:
staleness 0 takes at most 1.2 times as many epochs as pipe, staleness 1 at most 1.7 times.
Published: Thorpe et al. 2021 (Dorylus, OSDI'21), section 7.3: 1.00 to 1.14 and 1.07 to 1.58 times.

The folder holds planetoid_cora/ and planetoid_pubmed/ with the original ind.* files; without it the bundled Cora
stands in for the one, and the other is left out. --quick: Cora and a small block model, GCN, one seed.
"""

import argparse
import multiprocessing
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.accuracy import default_folder
from benchmarks.curves import Curve, plot
from benchmarks.goals import Goal, arguments, write
from benchmarks.graphs import Recipe
from benchmarks.graphs import write as write_graph
from benchmarks.modes import ASYNC, MODES, generated_graphs, prepared, with_settings
from common.epoch_metrics import EpochMetrics
from common.wire.channel import Faults
from local_cloud.in_process import run_in_process
from local_cloud.prepare import PreparedJob
from local_cloud.run_result import Watch

SHARE_OF_BEST = 0.98
PATIENCE = 3
"""Times pipe's epochs after which a run has not reached the target."""
AT_MOST = {ASYNC[0]: 1.2, ASYNC[1]: 1.7}
SHOWN = ("pipe", *ASYNC.values())
COMMON = {"cut.num_intervals": "12", "cluster.num_graph_servers": "3", "training.eval_frequency": "0"}
AGES = ("reads_ahead", "reads_exact", "stale_0", "stale_1", "stale_2")
"""Blocks that Gathers read, as graph servers count them: of a later epoch, of this one, of the last, older by 1, 2."""


@dataclass(frozen=True)
class Case:
    """graph: how it is called; target: what is trained on, None if it is not there; delay: of a message, in seconds, at
    most; predicts: `weight_prediction` of async."""

    graph: str
    model: str
    target: str | None
    num_epochs: int
    delay: float = 0.03
    predicts: bool = True

    @property
    def name(self) -> str:
        return f"{self.graph}, {self.model}"


@dataclass(frozen=True)
class Run:
    """epochs: until the target was reached; None: it was not."""

    epochs: int | None
    curve: Curve


@dataclass(frozen=True)
class Result:
    """runs: by mode, one per seed."""

    case: Case
    runs: Mapping[str, Sequence[Run]] = field(default_factory=dict)

    def median(self, mode: str) -> float | None:
        """Epochs; None if the median seed never got there, or there is no graph."""
        each = [float("inf") if run.epochs is None else run.epochs for run in self.runs.get(mode, ())]
        found = statistics.median(each) if each else float("inf")
        return None if found == float("inf") else found

    def ratio(self, mode: str) -> float | None:
        mine, pipe = self.median(mode), self.median("pipe")
        return None if mine is None or pipe is None else mine / pipe

    def paired(self, mode: str) -> float | None:
        """Median of the seeds' own ratios: what chance did to a seed, it did to both."""
        each = [
            float("inf") if mine.epochs is None else mine.epochs / pipe.epochs
            for mine, pipe in zip(self.runs.get(mode, ()), self.runs.get("pipe", ()), strict=True)
            if pipe.epochs is not None
        ]
        found = statistics.median(each) if each else float("inf")
        return None if found == float("inf") else found

    def shares(self, mode: str) -> dict[str, float]:
        """Of the blocks that Gathers read: how many epochs old, or ahead."""
        counts = [run.curve.counts for run in self.runs.get(mode, ())]
        totals = {name: sum(c.get(name, 0) for c in counts) for name in AGES}
        return {name: total / max(1, sum(totals.values())) for name, total in totals.items()}


def cases(folder: Path) -> list[Case]:
    """Nine: three graphs, three models."""
    blocks = str(write_graph(Recipe("blocks", 100_000, 1_000_000), generated_graphs()))
    cora = _found(folder / "planetoid_cora") or "cora"
    pubmed = _found(folder / "planetoid_pubmed")
    graphs = (("Cora", cora, 0.03), ("PubMed", pubmed, 0.05), ("blocks", blocks, 0.1))
    epochs = {"gcn": (100, 100, 100), "graphsage": (100, 100, 150), "gat": (150, 150, 60)}
    return [
        Case(graph, model, target, epochs[model][place], delay)
        for place, (graph, target, delay) in enumerate(graphs)
        for model in epochs
    ]


def quick_cases() -> list[Case]:
    blocks = str(write_graph(Recipe("blocks", 10_000, 100_000, train=0.3), generated_graphs()))
    return [Case("Cora", "gcn", "cora", 60), Case("small blocks", "gcn", blocks, 60)]


def _found(path: Path) -> str | None:
    return str(path) if path.is_dir() else None


def converge(case: Case, seed: int) -> dict[str, Run]:
    """One seed, all modes."""
    assert case.target is not None
    settings = {**COMMON, "model.name": case.model, "training.seed": str(seed)}
    job = prepared(case.target, settings)
    runs: dict[str, Run] = {}
    for mode in SHOWN:
        limit = case.num_epochs if mode == "pipe" else PATIENCE * (runs["pipe"].epochs or case.num_epochs)
        of_mode = {**settings, **MODES[mode], "training.num_epochs": str(limit + 1)}
        if mode != "pipe":
            of_mode["training.weight_prediction"] = str(case.predicts).lower()
        target = None if mode == "pipe" else SHARE_OF_BEST * runs["pipe"].curve.best
        curve = train(with_settings(job, case.target, of_mode), target, Faults(max_delay=case.delay, seed=seed))
        runs[mode] = Run(curve.epochs_until(SHARE_OF_BEST * curve.best if target is None else target), curve)
    return runs


def train(job: PreparedJob, target: float | None, faults: Faults | None = None) -> Curve:
    """Until it reaches the target, or to the end."""
    accuracies: list[float] = []
    stop: list[Callable[[str], None]] = []

    def epoch_ended(ended: EpochMetrics) -> None:
        if ended.exact or ended.valid_accuracy is None:
            return  # the last epoch is evaluated, which is another accuracy
        accuracies.append(ended.valid_accuracy)
        if target is not None and Curve(tuple(accuracies)).epochs_until(target) is not None:
            stop[0]("the target is reached")

    result = run_in_process(job, Watch(on_epoch=epoch_ended, stoppable=stop.append), faults=faults)
    return Curve(tuple(accuracies), dict(result.totals.counts))


def measure(chosen: Sequence[Case], seeds: range, jobs: int) -> Iterator[Result]:
    """One result after the other, as they come; `jobs` seeds at a time."""
    there = [case for case in chosen if case.target is not None]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        each = pool.imap(_converge, [(case, seed) for case in there for seed in seeds])
        for case in chosen:
            of_seed = [next(each) for _ in seeds] if case.target is not None else []
            yield Result(case, {mode: [runs[mode] for runs in of_seed] for mode in SHOWN})


def _converge(of: tuple[Case, int]) -> dict[str, Run]:
    return converge(*of)


def table(results: Sequence[Result]) -> str:
    """Markdown: epochs, and beside them how many times pipe's, by medians and seed by seed, and how old what async
    read was."""
    heads = ("graph, model", *SHOWN, "s=1 reads ahead / exact / 0 / 1 / 2")
    lines = [heads, tuple("---" for _ in heads)]
    for result in results:
        cells = [_cell(result, mode) for mode in SHOWN]
        ages = (f"{share:.1%}" for share in result.shares(ASYNC[1]).values())
        lines.append((result.case.name, *cells, " / ".join(ages)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(result: Result, mode: str) -> str:
    median, ratio, paired = result.median(mode), result.ratio(mode), result.paired(mode)
    if result.case.target is None:
        return "no data"
    if median is None:
        return "not reached"
    if mode == "pipe" or ratio is None or paired is None:
        return f"{median:g}"
    return f"{median:g} ({ratio:.2f}, {paired:.2f})"


def goals_of(results: Sequence[Result]) -> dict[str, Goal]:
    return {
        f"{result.case.name}: {mode} over pipe": Goal(result.ratio(mode), most, at_most=True)
        for result in results
        for mode, most in AT_MOST.items()
    }


def rows_of(result: Result) -> list[dict[str, object]]:
    return [
        {
            "case": result.case.name,
            "mode": mode,
            "median": result.median(mode),
            "ratio": result.ratio(mode),
            "paired": result.paired(mode),
            "epochs": [run.epochs for run in runs],
            "best": [run.curve.best for run in runs],
            "reads": result.shares(mode),
        }
        for mode, runs in result.runs.items()
    ]


def parser() -> argparse.ArgumentParser:
    made = arguments("Epochs until the accuracy is there, by mode.")
    made.add_argument("--data", type=Path, default=default_folder(), metavar="FOLDER")
    made.add_argument("--only", nargs="+", default=[], metavar="WORD", help="graphs or models, such as Cora gcn")
    made.add_argument(
        "--unpredicted", action="store_true", help="async with `weight_prediction: false`, as in the paper"
    )
    made.add_argument("--jobs", type=int, default=2, metavar="N", help="seeds trained at a time, on a core each (2)")
    made.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves there (.svg, .png)")
    return made


def main() -> None:
    given = parser().parse_args()
    chosen, seeds = (quick_cases(), range(1)) if given.quick else (cases(given.data), range(5))
    results: list[Result] = []
    chosen = [replace(case, predicts=not given.unpredicted) for case in chosen]
    for result in measure(_of(chosen, given.only), seeds, given.jobs):
        results.append(result)
        print(table([result]), flush=True)
        write(given.json, goals_of(results), [row for result in results for row in rows_of(result)])
        if given.plot is not None:
            draw(results, given.plot)
    print(table(results))


def draw(results: Sequence[Result], path: Path) -> None:
    """The first seed's curves."""
    panels = {r.case.name: {mode: r.runs[mode][0].curve for mode in SHOWN} for r in results if r.runs["pipe"]}
    if panels:
        plot(panels, SHARE_OF_BEST, path)


def _of(chosen: Sequence[Case], words: Sequence[str]) -> list[Case]:
    graphs, models = {case.graph for case in chosen}, {case.model for case in chosen}
    wanted = set(words) & graphs or graphs, set(words) & models or models
    return [case for case in chosen if case.graph in wanted[0] and case.model in wanted[1]]


if __name__ == "__main__":
    main()

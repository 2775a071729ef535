"""Test accuracy at the best valid epoch on the public Planetoid splits, mean over seeds, beside the published figures.

    python benchmarks/accuracy.py [--data FOLDER] [--quick] [--json FILE]

The folder holds planetoid_cora/, planetoid_citeseer/, planetoid_pubmed/ with the original ind.* files; readers'
defaults and built-in hyper-parameters, nothing else set. --quick: three seeds instead of ten.
Published: Kipf & Welling 2017, table 2; Velickovic et al. 2018, table 2.
"""

import multiprocessing
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.goals import Goal, arguments, write
from cli.spec_flags import flag_layer
from common.epoch_metrics import EpochMetrics
from local_cloud.in_process import Watch, run_in_process
from local_cloud.load_job import load_job
from local_cloud.observer import Silent
from local_cloud.prepare import prepare_job


@dataclass(frozen=True)
class Case:
    dataset: str
    model: str
    goal: float
    published: float

    @property
    def name(self) -> str:
        return f"{self.dataset} {self.model}"


CASES = (
    Case("cora", "gcn", 81.0, 81.5),
    Case("cora", "gat", 82.0, 83.0),
    Case("pubmed", "gcn", 78.5, 79.0),
    Case("citeseer", "gcn", 69.5, 70.3),
)


def default_folder() -> Path:
    """Beside the checkout, or where DORYLUS_REAL_DATA says."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("DORYLUS_REAL_DATA", beside))


def accuracy_of(case: Case, seed: int, folder: Path, cache: Path) -> tuple[float, float]:
    """(percent, seconds)."""
    flags = flag_layer({"model.name": case.model, "training.seed": str(seed)})
    resolved = load_job(str(folder / f"planetoid_{case.dataset}"), flags, Path.cwd())
    job = prepare_job(resolved.spec, base_folder=Path.cwd(), cache_dir=cache, observer=Silent())
    epochs: list[EpochMetrics] = []
    began = time.monotonic()
    result = run_in_process(job, Watch(on_epoch=epochs.append))
    best = next(e for e in epochs if e.epoch == result.stopped.best_version)
    return 100 * (best.test_accuracy or 0.0), time.monotonic() - began


def measure(folder: Path, seeds: range) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as cache, multiprocessing.get_context("spawn").Pool(2) as pool:
        for case in CASES:
            if not (folder / f"planetoid_{case.dataset}").is_dir():
                rows.append({"case": case.name, "mean": None, "goal": case.goal, "published": case.published})
                continue
            runs = pool.starmap(accuracy_of, [(case, seed, folder, Path(cache)) for seed in seeds])
            found = [accuracy for accuracy, _ in runs]
            rows.append(
                {
                    "case": case.name,
                    "mean": statistics.mean(found),
                    "deviation": statistics.pstdev(found),
                    "seeds": found,
                    "seconds_per_run": statistics.median(seconds for _, seconds in runs),
                    "goal": case.goal,
                    "published": case.published,
                }
            )
    return rows


def show(rows: list[dict[str, object]]) -> None:
    table = Table(title="test accuracy at the best valid epoch, %")
    for column in ("graph, model", "mean", "±", "published", "at least", "holds", "s per run"):
        table.add_column(column, justify="left" if column == "graph, model" else "right")
    for row in rows:
        mean = row["mean"]
        if isinstance(mean, float):
            shown = (f"{mean:.2f}", f"{row['deviation']:.2f}", f"{row['published']}", f"{row['goal']}")
            table.add_row(str(row["case"]), *shown, _yes(mean, row["goal"]), f"{row['seconds_per_run']:.1f}")
        else:
            table.add_row(str(row["case"]), "no data", "", f"{row['published']}", f"{row['goal']}", "no", "")
    Console().print(table)


def _yes(mean: float, goal: object) -> str:
    return "yes" if isinstance(goal, float) and mean >= goal else "no"


def main() -> None:
    parser = arguments("Accuracy on the public Planetoid splits.")
    parser.add_argument("--data", type=Path, default=default_folder(), metavar="FOLDER")
    given = parser.parse_args()
    rows = measure(given.data, range(3) if given.quick else range(10))
    show(rows)
    write(given.json, {c.name: Goal(r["mean"], c.goal) for c, r in zip(CASES, rows, strict=True)}, rows)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()

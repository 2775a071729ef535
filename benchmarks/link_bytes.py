"""What each link bears, against what `explain` predicts: the job of `make demo`.

    python benchmarks/link_bytes.py [--quick] [--json FILE]

Leases with the default settings, whose number is tuned; as many from beginning to end; and these renewed every ten
seconds. When their number changes intervals change hands, and a successor may start in a container without the
constants: then they are sent again, which is counted. Goals: without what was sent again no link bears more than 1.02
of what is predicted; with a fixed number, nothing was sent again. --quick: 20 epochs instead of 100.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.goals import Goal, arguments, write
from benchmarks.modes import prepared
from local_cloud.cluster import ClusterOptions, run_cluster
from local_cloud.explain import computers_of, graph_counts
from local_cloud.lambda_process import LOCAL_CONCURRENCY
from local_cloud.payload import RunShape, predict_links
from local_cloud.run_folder import new_job_id
from local_cloud.run_result import Watch

WITHIN = 1.02
DEMO: Mapping[str, str] = {
    "cluster.num_graph_servers": "3",
    "cluster.num_parameter_servers": "2",
    "backend.name": "lambda",
    "cut.num_intervals": "12",
    "training.seed": "7",
}
LEASES: Mapping[str, Mapping[str, str]] = {
    "by default": {},
    "fixed": {"backend.min_lambdas": "100"},
    "renewed": {"backend.min_lambdas": "100", "backend.lease_seconds": "10"},
}


@dataclass(frozen=True)
class Row:
    """predicted, moved, constants_again: bytes."""

    leases: str
    link: str
    predicted: int
    moved: int
    constants_again: int

    @property
    def ratio(self) -> float:
        return self.moved / self.predicted

    @property
    def ratio_once(self) -> float:
        """Without the constants that were sent again."""
        return (self.moved - self.constants_again) / self.predicted


def measure(leases: str, num_epochs: int) -> list[Row]:
    """One row per link, in bytes."""
    job = prepared("cora", {**DEMO, **LEASES[leases], "training.num_epochs": str(num_epochs)})
    result = run_cluster(job, new_job_id("links"), Watch(), ClusterOptions())
    counts = graph_counts(job.folder, job.spec.cluster.num_graph_servers)
    last = result.stopped.last_version
    run = RunShape.of(last, last, best_version=result.stopped.best_version)
    computers = computers_of(job.spec, counts, concurrency=LOCAL_CONCURRENCY)
    again = result.totals.counts.get("constants_again", 0)
    return [
        Row(leases, link, predicted, result.traffic.payload[link], again if link == "graph_lambda" else 0)
        for link, predicted in predict_links(job.programs, counts, computers, run).items()
        if predicted
    ]


def show(rows: Sequence[Row]) -> None:
    table = Table("leases", "link", title="bytes by link")
    for column in ("predicted", "moved", "constants again", "ratio", "without them"):
        table.add_column(column, justify="right")
    for row in rows:
        ratios = f"{row.ratio:.3f}", f"{row.ratio_once:.3f}"
        table.add_row(row.leases, row.link, *map(str, (row.predicted, row.moved, row.constants_again)), *ratios)
    Console().print(table)


def goals_of(rows: Sequence[Row]) -> dict[str, Goal]:
    once = {f"{row.link}, leases {row.leases}": Goal(row.ratio_once, WITHIN, at_most=True) for row in rows}
    again = sum(row.constants_again for row in rows if row.leases == "fixed")
    return {**once, "constants sent again, leases fixed": Goal(again, 0, at_most=True)}


def main() -> None:
    given = arguments("Bytes by link, predicted and moved.").parse_args()
    rows = [row for leases in LEASES for row in measure(leases, 20 if given.quick else 100)]
    show(rows)
    write(given.json, goals_of(rows), [asdict(row) | {"ratio": row.ratio} for row in rows])


if __name__ == "__main__":
    main()

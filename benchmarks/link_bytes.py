"""What each link bears, against what `explain` predicts: the job of `make demo`.

    python benchmarks/link_bytes.py [--quick] [--json FILE]

Leases with the default settings, and fixed ones, neither renewed nor tuned: only these move constants once. Goals: no
link bears more than 1.02 of what is predicted. --quick: 20 epochs instead of 100.
"""

from collections.abc import Mapping

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
    "fixed": {"backend.lease_max_tasks": "100000", "backend.min_lambdas": "100"},
}
Row = dict[str, object]


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
        {
            "leases": leases,
            "link": link,
            "predicted": predicted,
            "moved": result.traffic.payload[link],
            "ratio": result.traffic.payload[link] / predicted,
            "constants_again": again if link == "graph_lambda" else 0,
        }
        for link, predicted in predict_links(job.programs, counts, computers, run).items()
        if predicted
    ]


def show(rows: list[Row]) -> None:
    table = Table(title="bytes by link")
    for column in rows[0]:
        table.add_column(column, justify="left" if column in ("leases", "link") else "right")
    for row in rows:
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    Console().print(table)


def main() -> None:
    given = arguments("Bytes by link, predicted and moved.").parse_args()
    rows = [row for leases in LEASES for row in measure(leases, 20 if given.quick else 100)]
    show(rows)
    goals = {f"{row['link']}, leases {row['leases']}": Goal(row["ratio"], WITHIN, at_most=True) for row in rows}  # type: ignore[arg-type]
    write(given.json, goals, rows)


if __name__ == "__main__":
    main()

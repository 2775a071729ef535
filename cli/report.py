"""How a training ended, in a few lines: plain, or as a table on a terminal."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UnsetType
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from local_cloud.asynchrony import Asynchrony
    from local_cloud.summary import Summary


ERRORS = ("rmse", "mae")
"""In the unit of what is learnt; all other metrics are shares."""


def result_lines(summary: Summary) -> list[str]:
    rows = _rows(summary)
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {value}" for name, value in rows]


def show_result(summary: Summary) -> None:
    table = Table(show_header=False)
    for name, value in _rows(summary):
        table.add_row(name, value)
    Console().print(table)


def _rows(summary: Summary) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = [("state", summary.state)]
    for reason in (summary.failure_reason, summary.stop_reason):
        if isinstance(reason, str):
            rows.append(("reason", reason))
    if summary.best_epoch is not None:
        name = summary.metric_name.replace("_", " ")
        rows.append((f"test {name}", _value(summary.metric_name, summary.test_metric)))
        rows.append((f"valid {name}", _value(summary.metric_name, summary.valid_metric)))
        rows.append(("best epoch", f"{summary.best_epoch} of {summary.epochs}"))
    else:
        rows.append(("epochs", str(summary.epochs)))
    median = summary.epoch_seconds_median
    rows.append(("seconds", f"{summary.seconds:.1f}" + ("" if median is None else f", {median:.3f} an epoch")))
    rows += _work(summary)
    if not isinstance(summary.asynchrony, UnsetType):
        rows.append(("rows read", _ages(summary.asynchrony)))
    if summary.restarts:
        rows.append(("restarts", str(summary.restarts)))
    rows.append(("run folder", _shown(summary.run_dir)))
    if summary.state == "Stopped":
        rows.append(("go on with", f"dorylus train --resume {_shown(summary.run_dir)}"))
    return rows


def _work(summary: Summary) -> list[tuple[str, str]]:
    """What was done where, and what it would have cost."""
    rows = [("tensor tasks", f"{summary.tasks}, {summary.relaunches} relaunched, {summary.lost_leases} leases lost")]
    moved = [(link, of.payload + of.overhead) for link, of in summary.bytes_moved.items() if of.payload + of.overhead]
    if moved:
        rows.append(("moved", ", ".join(f"{link.replace('_', '-')} {size / 1e6:.1f} MB" for link, size in moved)))
    if summary.lambda_requests:
        rows.append(("Lambda", f"{summary.lambda_gb_seconds:.1f} GB-s, {summary.lambda_requests} requests"))
    if summary.cost_usd is not None:
        left_out = [item.what for item in summary.bill if item.usd is None]
        said = f", {', '.join(left_out)} not counted" if left_out else ""
        rows.append(("cost on AWS", f"${summary.cost_usd:.4f}{said}"))
    return rows


def _ages(told: Asynchrony) -> str:
    """By age, and what the gates cost."""
    reads = {"exact": told.reads_exact, **{f"{age} stale": n for age, n in told.stale_reads.items()}}
    reads["ahead"] = told.reads_ahead
    total = max(1, sum(reads.values()))
    shares = ", ".join(f"{100 * n / total:.1f} % {age}" for age, n in reads.items() if n)
    return f"{shares}; intervals waited {told.epoch_gate_seconds + told.read_gate_seconds:.1f} s"


def _value(metric: str, value: float | None) -> str:
    if value is None:
        return "nothing in the mask to judge"
    return f"{value:.4g}" if metric in ERRORS else f"{100 * value:.2f} %"


def _shown(folder: str) -> str:
    """From here, where it lies below."""
    path = Path(folder)
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else folder

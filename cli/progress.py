"""Who watches a training at the command line: a bar that moves on a terminal, plain lines elsewhere, or nobody.

All of it goes to stderr; stdout is for results.
"""

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from common.resolve_spec import ResolvedSpec
from local_cloud.observer import EpochReport, Observer, Silent
from local_cloud.run_result import Status

LINES = 10
"""About so many lines of a training that nobody sees on a terminal."""


@contextmanager
def watching(resolved: ResolvedSpec, *, silent: bool) -> Iterator[Observer]:
    if silent:
        yield Silent()
    elif sys.stderr.isatty():
        bar = Bar(Console(stderr=True), resolved)
        with bar.progress:
            yield bar
    else:
        yield Lines(resolved)


class Rate:
    """Epochs per second, over the last few: the first one also makes the kernels."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=10)

    def after(self, report: EpochReport) -> float:
        self._seconds.append(report.seconds)
        return len(self._seconds) / max(sum(self._seconds), 1e-9)


class Phases(Silent):
    """Says on a terminal what is being done, and notes anywhere; for commands that train nothing."""

    def doing(self, what: str) -> None:
        if sys.stderr.isatty():
            click.echo(f"{what} ...", err=True)

    def note(self, text: str) -> None:
        click.echo(f"note: {text}", err=True)


class Lines:
    """One line at the start, one for every tenth of the epochs."""

    def __init__(self, resolved: ResolvedSpec) -> None:
        self._job, self._num_epochs, self._rate = _job(resolved), resolved.spec.training.num_epochs, Rate()

    def doing(self, what: str) -> None:
        pass

    def training_starts(self, job_id: str, run_dir: str, num_epochs: int) -> None:
        click.echo(f"training {self._job}, {num_epochs} epochs, into {run_dir}", err=True)

    def epoch_ended(self, report: EpochReport) -> None:
        rate = self._rate.after(report)
        if report.epoch % -(-self._num_epochs // LINES) == 0 or report.epoch in (1, self._num_epochs):
            width = len(str(self._num_epochs))
            click.echo(f"epoch {report.epoch:>{width}}/{self._num_epochs}  {_figures(report, rate)}", err=True)

    def status(self, status: Status) -> None:
        pass

    def note(self, text: str) -> None:
        click.echo(f"note: {text}", err=True)


class Bar:
    """One live line: phase or job, bar, epochs, loss, accuracies, rate."""

    def __init__(self, console: Console, resolved: ResolvedSpec) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(24), EpochColumn(), TextColumn("{task.fields[figures]}"))
        self.progress = Progress(*columns, TimeElapsedColumn(), console=console)
        self._job, self._rate = _job(resolved), Rate()
        self._figures = self._status = ""
        self._line = self.progress.add_task("starting", total=None, figures="")

    def doing(self, what: str) -> None:
        self.progress.update(self._line, description=what)

    def training_starts(self, job_id: str, run_dir: str, num_epochs: int) -> None:
        self.progress.update(self._line, description=self._job, total=num_epochs)

    def epoch_ended(self, report: EpochReport) -> None:
        self._figures = _figures(report, self._rate.after(report))
        figures = f"{self._figures}{self._status}"
        self.progress.update(self._line, description=self._job, completed=report.epoch, figures=figures)

    def status(self, status: Status) -> None:
        self._status = f"  {status.tasks_in_flight} in flight  ${status.cost_usd:.4f}"
        self.progress.update(self._line, figures=f"{self._figures}{self._status}")

    def note(self, text: str) -> None:
        self.progress.console.print(f"note: {text}", markup=False, highlight=False)


class EpochColumn(ProgressColumn):
    """`epoch 12/200`, once training has begun."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"epoch {int(task.completed)}/{int(task.total)}")


def _job(resolved: ResolvedSpec) -> str:
    return f"{resolved.spec.model.name} on {resolved.spec.dataset.path.rstrip('/').rpartition('/')[2]}"


def _figures(report: EpochReport, rate: float) -> str:
    parts, about = [f"loss {report.loss:.4f}"], "" if report.exact else "~"
    for mask, share in (("train", report.train_metric), ("valid", report.valid_metric)):
        parts += [] if share is None else [f"{mask} {about}{share:.4f}"]
    return "  ".join([*parts, f"{rate:.1f} epochs/s"])

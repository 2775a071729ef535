"""Dorylus as a contestant: `dorylus train` as anybody would run it, every role a process, read off its run folder."""

import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.graphs import Recipe, write
from benchmarks.modes import Settings, generated_graphs
from benchmarks.outcome import WARM_UP, Outcome, Overhead
from benchmarks.sizes import graph_folder
from benchmarks.watched import environment, run_watched
from cli.spec_flags import flag_layer, flag_name
from common.job_spec import JobSpec
from common.trace import StepRecord, read
from local_cloud.load_job import load_job
from local_cloud.observer import EpochReport
from local_cloud.run_folder import METRICS, TRACE, read_lines

NO_EVALUATION: Settings = {"training.eval_frequency": "0", "output.save_model_frequency": "1000000"}
KERNELS = "from common.kernel_names import kernel_names; print(kernel_names().partition(';')[0])"


def resolved(recipe: Recipe, settings: Settings) -> JobSpec:
    """The job spec that these settings make, the model's own defaults filled in."""
    folder = write(recipe, generated_graphs())
    return load_job(str(folder), flag_layer(settings), Path.cwd()).spec


def own_run(recipe: Recipe, settings: Settings, more: Settings, *, num_epochs: int, limit: float) -> Outcome:
    """more: settings that change nothing in how the graph is cut. limit: in seconds, for all of it."""
    folder = graph_folder(recipe, resolved(recipe, settings))
    # One more epoch: its beginning ends the last one that is measured.
    flags = flags_of({**settings, **NO_EVALUATION, **more, "training.num_epochs": str(num_epochs + 1)})
    with tempfile.TemporaryDirectory() as place:
        run_dir = Path(place) / "run"
        command = [str(Path(sys.executable).with_name("dorylus")), "train", str(folder), "--quiet"]
        done = run_watched([*command, "--run-dir", str(run_dir), *flags], environment(), seconds=limit)
        if done.code != 0:
            return Outcome(why=done.why)
        records = [r for r in read(run_dir / TRACE) if r.pass_.startswith("train")]
        reports = read_lines(run_dir / METRICS, EpochReport)
    return Outcome(
        seconds=epoch_seconds(records),
        losses=tuple(report.loss for report in reports[:num_epochs]),
        peak_bytes=done.peak_bytes,
        kernels=kernels(),
        others=done.others,
        overhead=overhead(records),
    )


def flags_of(settings: Settings) -> list[str]:
    """As they are typed."""
    found: list[str] = []
    for key, value in settings.items():
        name = flag_name(key)
        assert name is not None, key
        found += [name, value]
    return found


def kernels() -> str:
    """Which BLAS kernels a process chooses that is started as ours are."""
    done = run_watched([sys.executable, "-c", KERNELS], environment(), seconds=60)
    return done.stdout.strip()


def epoch_seconds(records: Sequence[StepRecord]) -> tuple[float, ...]:
    """From the decision on an epoch's first step to that on the next epoch's, on one graph server: its clock is one."""
    began = {epoch: min(r.created for r in of) for epoch, of in _by_epoch(records).items()}
    return tuple(began[epoch + 1] - began[epoch] for epoch in sorted(began) if epoch + 1 in began)


def overhead(records: Sequence[StepRecord]) -> Overhead:
    """The median over the epochs after the warm-up."""
    epochs, seconds = _by_epoch(records), epoch_seconds(records)
    idle = [whole - _busy(epochs[epoch]) for epoch, whole in zip(sorted(epochs), seconds, strict=False)]
    return Overhead(statistics.median(idle[min(WARM_UP, len(idle) - 1) :]), len(epochs[min(epochs)]))


def _by_epoch(records: Iterable[StepRecord]) -> Mapping[int, list[StepRecord]]:
    """Of the first graph server that has records."""
    found: dict[int, list[StepRecord]] = {}
    first = min((record.server for record in records), default=0)
    for record in records:
        if record.server == first:
            found.setdefault(int(record.pass_.split()[1]), []).append(record)
    return found


def _busy(records: Sequence[StepRecord]) -> float:
    """Seconds in which at least one of them was at work."""
    total, until = 0.0, float("-inf")
    for record in sorted(records, key=lambda r: r.started):
        total += max(0.0, record.ended - max(record.started, until))
        until = max(until, record.ended)
    return total

"""Train one job on this machine, from a resolved spec to a run folder.

    claim the run folder -> read and cut -> train -> weights, predictions -> summary

Whatever ends the training, the run folder then holds what there is, and its summary says how it ended. An error that is
found before training starts leaves no run folder behind.
"""

import asyncio
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from common.peak_memory import PeakMemory
from common.pricing import instance_hour
from common.resolve_spec import ResolvedSpec, dump
from common.trace import StepRecord, TraceFile
from common.weights_hash import weights_sha256
from graph_server.ingest.detect import bundled_names, is_bundled_name
from local_cloud import run_folder
from local_cloud.cluster import ClusterOptions, run_cluster
from local_cloud.costs import run_cost
from local_cloud.ctrl_c import CtrlC
from local_cloud.in_process import run_in_process
from local_cloud.observer import EpochReport, Observer
from local_cloud.predictions import predictions
from local_cloud.prepare import PreparedJob, prepare_job
from local_cloud.run_folder import JsonLines, RunFolder, new_job_id
from local_cloud.run_result import RunResult, Totals, Watch
from local_cloud.summary import Summary, bytes_moved, epoch_seconds_median, to_json
from parameter_server.assemble import clock_settings
from parameter_server.epoch_metrics import EpochMetrics


@dataclass(frozen=True)
class RunOptions:
    """base_folder: where relative paths start. run_dir: the run folder itself; None: a new one under output.path.
    in_process: all roles in this process; secure: CURVE over TCP between them instead of ipc."""

    base_folder: Path
    cache_dir: Path
    run_dir: Path | None = None
    in_process: bool = False
    secure: bool = False


@dataclass
class _Seen:
    """What a run has told so far."""

    last_moment: float
    reports: list[EpochReport] = field(default_factory=list)
    tasks: int = 0
    memory: PeakMemory = field(default_factory=PeakMemory)
    cut_short: RunResult | None = None


def train_job(resolved: ResolvedSpec, options: RunOptions, observer: Observer) -> Summary:
    """The first Ctrl-C ends the job after the epoch, the second at once; both end in a summary that says Stopped.

    Raises SpecError for the run folder, whatever is wrong with job or dataset, and the error of a role; after the
    latter there is a run folder, too, whose summary says Failed.
    """
    began = time.monotonic()
    for note in resolved.notes:
        observer.note(note)
    job_id = new_job_id(resolved.spec.name)
    folder = RunFolder.claim(_run_dir(resolved, options, job_id))
    try:
        job = prepare_job(
            resolved.spec, base_folder=options.base_folder, cache_dir=options.cache_dir, observer=observer
        )
        clock_settings(job.spec, job.facts)
        instance_hour(job.spec.cluster.instance_type)
    except BaseException:
        folder.discard()
        raise
    folder.write_text(run_folder.SPEC, dump(with_absolute_path(resolved, options.base_folder)))
    observer.training_starts(job_id, str(folder.path), resolved.spec.training.num_epochs)
    return _Training(job, job_id, folder, (options, observer), began=began).run()


def with_absolute_path(resolved: ResolvedSpec, base_folder: Path) -> ResolvedSpec:
    """The same job from any folder: the dataset's path no longer depends on where the command ran."""
    path = resolved.spec.dataset.path
    if "://" in path or (is_bundled_name(path) and path in bundled_names()):
        return resolved
    absolute = os.path.abspath(base_folder / Path(path).expanduser())
    dataset = resolved.spec.dataset.model_copy(update={"path": absolute})
    spec = resolved.spec.model_copy(update={"dataset": dataset})
    return ResolvedSpec(spec, resolved.sources, resolved.notes, resolved.given)


def _run_dir(resolved: ResolvedSpec, options: RunOptions, job_id: str) -> Path:
    if options.run_dir is not None:
        return options.base_folder / options.run_dir.expanduser()
    return options.base_folder / Path(resolved.spec.output.path).expanduser() / job_id


class _Training:
    """One run, its watch and its results."""

    def __init__(
        self, job: PreparedJob, job_id: str, folder: RunFolder, whom: tuple[RunOptions, Observer], *, began: float
    ) -> None:
        self._job, self._job_id, self._folder, self._began = job, job_id, folder, began
        self._options, self._observer = whom
        self._seen = _Seen(time.monotonic())

    def run(self) -> Summary:
        with CtrlC(self._observer) as ctrl_c:
            return self._run(ctrl_c)

    def _run(self, ctrl_c: CtrlC) -> Summary:
        try:
            try:
                result = self._train(ctrl_c)
            finally:
                ctrl_c.hold()
        except KeyboardInterrupt:
            summary = self._end(self._seen.cut_short, state="Stopped")
            self._observer.note(_kept(self._seen.cut_short))
            return summary
        except Exception as error:
            self._end(self._seen.cut_short, state="Failed", reason=_in_words(error))
            raise
        self._observer.doing("writing the results")
        return self._end(result)

    def _train(self, ctrl_c: CtrlC) -> RunResult:
        path = self._folder.path
        with JsonLines(path / run_folder.METRICS) as metrics, TraceFile(path / run_folder.TRACE) as trace:
            watch = Watch(
                on_epoch=lambda ended: self._epoch_ended(ended, metrics),
                record=lambda record: self._step_done(record, trace),
                stoppable=ctrl_c.stoppable,
                cut_short=self._cut_short,
                status=self._observer.status,
            )
            try:
                if self._options.in_process:
                    return run_in_process(self._job, watch)
                self._observer.doing("starting the roles")
                return run_cluster(self._job, self._job_id, watch, ClusterOptions(secure=self._options.secure))
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None

    def _epoch_ended(self, ended: EpochMetrics, metrics: JsonLines) -> None:
        now, before = time.monotonic(), self._seen.last_moment
        report = EpochReport(**msgspec.structs.asdict(ended), seconds=now - before)
        self._seen.last_moment = now
        self._seen.reports.append(report)
        metrics.write(report)
        self._seen.memory.sample()
        self._observer.epoch_ended(report)

    def _step_done(self, record: StepRecord, trace: TraceFile) -> None:
        self._seen.tasks += bool(record.backend)
        trace.write(record)

    def _cut_short(self, result: RunResult) -> None:
        self._seen.cut_short = result

    def _end(self, result: RunResult | None, *, state: str | None = None, reason: str | None = None) -> Summary:
        """Writes what there is; `state` and `reason` win over the result's."""
        if result is not None:
            self._write(result)
            state = state or result.stopped.state.value
            reason = reason or (result.stopped.reason if state == "Failed" else None)
        summary = self._summary(result, state or "Failed", reason)
        self._folder.write_text(run_folder.SUMMARY, to_json(summary))
        return summary

    def _write(self, result: RunResult) -> None:
        stopped = result.stopped
        if result.best is not None and stopped.best_version is not None:
            self._folder.write_weights(run_folder.BEST_WEIGHTS, result.best, stopped.best_version)
        self._folder.write_weights(run_folder.LAST_WEIGHTS, result.last, stopped.last_version)
        if result.logits is not None:
            self._folder.write_table(run_folder.PREDICTIONS, predictions(self._job.folder, result.logits))

    def _summary(self, result: RunResult | None, state: str, reason: str | None) -> Summary:
        seen = self._seen
        best = None if result is None else result.stopped.best_version
        totals = Totals() if result is None else result.totals
        seconds = time.monotonic() - self._began
        of_best = next((report for report in seen.reports if report.epoch == best), None)
        return Summary(
            job_id=self._job_id,
            run_dir=str(self._folder.path),
            state=state,  # type: ignore[arg-type]  # a state in which the training clock ends
            test_accuracy=of_best.test_accuracy if of_best else None,
            valid_accuracy=of_best.valid_accuracy if of_best else None,
            best_epoch=best,
            epochs=len(seen.reports),
            seconds=seconds,
            epoch_seconds_median=epoch_seconds_median(seen.reports),
            weights_sha256=None if result is None else weights_sha256(result.last),
            cut_sha256=self._job.folder.manifest.cut.cut_sha256,
            bit_reproducible=len(totals.kernels) <= 1,
            tasks=seen.tasks,
            relaunches=totals.counts.get("relaunches", 0),
            lost_leases=totals.counts.get("lost_leases", 0),
            bytes_moved=bytes_moved(None if result is None else result.traffic),
            lambda_gb_seconds=totals.lambda_gb_seconds,
            lambda_requests=totals.lambda_requests,
            cost_usd=run_cost(self._job.spec, totals, seconds).usd,
            peak_pss_bytes=seen.memory.sample(at_once=True) + totals.peak_pss_bytes,
            failure_reason=msgspec.UNSET if reason is None else reason,
        )


def _kept(result: RunResult | None) -> str:
    if result is None:
        return "stopped at once; kept: the spec and the metrics so far"
    best = result.stopped.best_version
    weights = f"the weights of epoch {result.stopped.last_version}" + (
        "" if best is None else f" and of the best, {best}"
    )
    return f"stopped at once; kept: {weights}, the metrics and the trace; there are no predictions"


def _in_words(error: Exception) -> str:
    return str(error) or type(error).__name__

"""Train one job on this machine, from a resolved spec to a run folder.

    claim the run folder -> read and cut -> train -> weights, predictions -> summary
    or, resumed: take it again -> the newest checkpoint -> read and cut -> train on -> ...

Whatever ends the training, the run folder then holds what there is, and its summary says how it ended. An error that is
found before training starts leaves no run folder behind.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from common.pricing import instance_hour
from common.resolve_spec import ResolvedSpec, dump
from common.weights_hash import weights_sha256
from graph_server.ingest.detect import bundled_names, is_bundled_name
from local_cloud import run_folder
from local_cloud.asynchrony import asynchrony
from local_cloud.cluster import ClusterOptions
from local_cloud.costs import run_cost
from local_cloud.ctrl_c import CtrlC
from local_cloud.generations import Origin
from local_cloud.in_process import Saving, run_in_process
from local_cloud.observer import EpochReport, Observer
from local_cloud.predictions import predictions
from local_cloud.prepare import PreparedJob, prepare_job
from local_cloud.restarts import run_job
from local_cloud.resume import earlier, newest_checkpoint, origin_of, refuse_completed
from local_cloud.run_folder import RunFolder, new_job_id, read_lines
from local_cloud.run_log import RunLog
from local_cloud.run_result import RunResult, Totals, Watch
from local_cloud.spending import Spending
from local_cloud.summary import Summary, bytes_moved, epoch_seconds_median, to_json, with_earlier
from parameter_server.assemble import clock_settings
from parameter_server.checkpoint import CheckpointFolder
from parameter_server.epoch_metrics import EpochMetrics

AT_ONCE = "stopped at once: what came after the last checkpoint is lost"


@dataclass(frozen=True)
class RunOptions:
    """base_folder: where relative paths start. run_dir: the run folder itself; None: a new one under output.path.
    in_process: all roles in this process; secure: CURVE over TCP between them instead of ipc. resume: go on with the
    run in run_dir. checkpoints: URL of their folder; None: in the run folder; s3_endpoint: of another S3 than AWS's."""

    base_folder: Path
    cache_dir: Path
    run_dir: Path | None = None
    in_process: bool = False
    secure: bool = False
    resume: bool = False
    checkpoints: str | None = None
    s3_endpoint: str | None = None


@dataclass(frozen=True)
class _Run:
    """What is to be done, and where. `earlier`: what the run took before it was resumed."""

    job: PreparedJob
    job_id: str
    folder: RunFolder
    options: RunOptions
    origin: Origin = field(default_factory=Origin)
    earlier: Summary | None = None

    @property
    def checkpoints(self) -> str:
        return self.options.checkpoints or self.folder.checkpoints

    @property
    def checkpoint_folder(self) -> CheckpointFolder:
        return CheckpointFolder(self.checkpoints, endpoint_url=self.options.s3_endpoint)


def train_job(resolved: ResolvedSpec, options: RunOptions, observer: Observer) -> Summary:
    """The first Ctrl-C or SIGTERM ends the job after the epoch, the second at once; both end in a summary that says
    Stopped.

    Raises SpecError for the run folder, whatever is wrong with job or dataset, CheckpointError if there is nothing to
    resume from, and the error of a role; after the latter there is a run folder, too, whose summary says Failed.
    """
    began = time.monotonic()
    for note in resolved.notes:
        observer.note(note)
    job_id = new_job_id(resolved.spec.name)
    path = _run_dir(resolved, options, job_id)
    folder = RunFolder.reopen(path) if options.resume else RunFolder.claim(path)
    try:
        if options.resume:
            refuse_completed(folder)
        run = _Run(_prepare(resolved, options, observer), job_id, folder, options)
        if options.resume:
            run = _resumed(run, observer)
        spending = Spending(run.job.spec, observer, began=began, earlier=run.earlier)
        spending.check_start()
    except BaseException:
        folder.discard()
        raise
    with folder:
        if not options.resume or _is_changed(resolved):
            folder.write_text(run_folder.SPEC, dump(with_absolute_path(resolved, options.base_folder)))
        if options.resume:
            run.checkpoint_folder.remove_after(run.origin.epoch)
        observer.training_starts(run.job_id, str(folder.path), resolved.spec.training.num_epochs)
        return _Training(run, observer, spending, began=began).run()


def _prepare(resolved: ResolvedSpec, options: RunOptions, observer: Observer) -> PreparedJob:
    job = prepare_job(resolved.spec, base_folder=options.base_folder, cache_dir=options.cache_dir, observer=observer)
    clock_settings(job.spec, job.facts)
    instance_hour(job.spec.cluster.instance_type)
    return job


def _resumed(run: _Run, observer: Observer) -> _Run:
    """Where it goes on, as the run that it is."""
    checkpoint = newest_checkpoint(run.checkpoint_folder, run.folder, observer)
    origin, job_id = origin_of(checkpoint, run.job), checkpoint.job.job_id
    observer.note(f"going on after epoch {origin.epoch}")
    return replace(run, job_id=job_id, origin=origin, earlier=earlier(run.folder, run.job, job_id))


def _is_changed(resolved: ResolvedSpec) -> bool:
    """A flag has changed what the run folder's spec says."""
    return any(source.startswith("--") for source in resolved.sources.values())


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

    def __init__(self, run: _Run, observer: Observer, spending: Spending, *, began: float) -> None:
        self._of, self._folder, self._began = run, run.folder, began
        self._observer, self._spending = observer, spending
        written = read_lines(self._folder.path / run_folder.METRICS, EpochReport)
        before = [report for report in written if report.epoch <= run.origin.epoch]
        self._log = RunLog(self._folder, observer, before)

    def run(self) -> Summary:
        with self._log, CtrlC(self._observer) as ctrl_c:
            return self._run(ctrl_c)

    def _run(self, ctrl_c: CtrlC) -> Summary:
        try:
            try:
                result = self._train(ctrl_c)
            finally:
                ctrl_c.hold()
        except KeyboardInterrupt:
            summary = self._end(self._log.left, state="Stopped", reason=AT_ONCE)
            self._observer.note(_kept(self._log.left))
            return summary
        except Exception as error:
            self._end(self._log.left, state="Failed", reason=_in_words(error))
            raise
        self._observer.doing("writing the results")
        return self._end(result)

    def _train(self, ctrl_c: CtrlC) -> RunResult:
        run, options = self._of, self._of.options
        try:
            if options.in_process:
                saving = Saving(run.checkpoints, run.job_id, run.origin)
                return run_in_process(run.job, self._watch(ctrl_c), saving=saving)
            self._observer.doing("starting the roles")
            cluster = ClusterOptions(
                secure=options.secure, checkpoints=run.checkpoints, s3_endpoint=options.s3_endpoint
            )
            return run_job(run.job, run.job_id, self._watch(ctrl_c), cluster, run.origin)
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    def _watch(self, ctrl_c: CtrlC) -> Watch:
        def stoppable(stop: Callable[[str], None]) -> None:
            ctrl_c.stoppable(stop)
            self._spending.stoppable(stop)

        def epoch_ended(ended: EpochMetrics) -> None:
            self._spending.epoch_ended()
            self._log.epoch_ended(ended)

        return Watch(
            on_epoch=epoch_ended,
            record=self._log.step_done,
            decided=self._log.decided,
            stoppable=stoppable,
            cut_short=self._log.cut_short,
            load=self._spending.load,
            rewound=self._log.rewound,
            note=self._observer.note,
        )

    def _end(self, result: RunResult | None, *, state: str | None = None, reason: str | None = None) -> Summary:
        """Writes what there is; `state` and `reason` win over the result's."""
        if result is not None:
            self._write(result)
            state = state or result.stopped.state.value
            reason = reason or result.stopped.reason
        summary = self._summary(result, state or "Failed", reason)
        self._folder.write_text(run_folder.SUMMARY, to_json(summary))
        return summary

    def _write(self, result: RunResult) -> None:
        stopped = result.stopped
        if result.best is not None and stopped.best_version is not None:
            self._folder.write_weights(run_folder.BEST_WEIGHTS, result.best, stopped.best_version)
        self._folder.write_weights(run_folder.LAST_WEIGHTS, result.last, stopped.last_version)
        if result.logits is not None:
            self._folder.write_table(run_folder.PREDICTIONS, predictions(self._of.job.folder, result.logits))

    def _summary(self, result: RunResult | None, state: str, reason: str | None) -> Summary:
        run, log = self._of, self._log
        best = None if result is None else result.stopped.best_epoch
        totals = Totals() if result is None else result.totals
        seconds = time.monotonic() - self._began
        ages, is_async = asynchrony(totals.counts), run.job.spec.training.mode == "async"
        of_best = next((report for report in log.reports if report.epoch == best), None)
        summary = Summary(
            job_id=run.job_id,
            run_dir=str(self._folder.path),
            state=state,  # type: ignore[arg-type]  # a state in which the training clock ends
            test_accuracy=of_best.test_accuracy if of_best else None,
            valid_accuracy=of_best.valid_accuracy if of_best else None,
            best_epoch=best,
            max_staleness=ages.max_staleness,
            asynchrony=ages if is_async else msgspec.UNSET,
            epochs=log.epochs,
            seconds=seconds,
            epoch_seconds_median=epoch_seconds_median(log.reports),
            weights_sha256=None if result is None else weights_sha256(result.last),
            cut_sha256=run.job.folder.manifest.cut.cut_sha256,
            bit_reproducible=len(totals.kernels) <= 1 and not is_async,
            tasks=log.tasks,
            relaunches=totals.counts.get("relaunches", 0),
            lost_leases=totals.counts.get("lost_leases", 0),
            bytes_moved=bytes_moved(None if result is None else result.traffic),
            lambda_gb_seconds=totals.lambda_gb_seconds,
            lambda_requests=totals.lambda_requests,
            cost_usd=run_cost(run.job.spec, totals, seconds).usd,
            peak_pss_bytes=log.memory.sample(at_once=True) + totals.peak_pss_bytes,
            restarts=log.restarts,
            failure_reason=reason if reason and state == "Failed" else msgspec.UNSET,
            stop_reason=reason if reason and state == "Stopped" else msgspec.UNSET,
        )
        return summary if run.earlier is None else with_earlier(summary, run.earlier)


def _kept(result: RunResult | None) -> str:
    if result is None:
        return "stopped at once; kept: the spec and the metrics so far"
    best = result.stopped.best_epoch
    weights = f"the weights of epoch {result.stopped.last_epoch}" + (
        "" if best is None else f" and of the best, {best}"
    )
    return f"stopped at once; kept: {weights}, the metrics and the trace; there are no predictions"


def _in_words(error: Exception) -> str:
    return str(error) or type(error).__name__

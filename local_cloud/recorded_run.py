"""One run and what it leaves: watched, written to its run folder as it goes, and summed up however it ends."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from common.epoch_metrics import EpochMetrics
from common.weights_hash import weights_sha256
from local_cloud import run_folder
from local_cloud.asynchrony import asynchrony
from local_cloud.ctrl_c import CtrlC
from local_cloud.generations import Origin
from local_cloud.observer import EpochReport, Observer
from local_cloud.predictions import predictions
from local_cloud.prepare import PreparedJob
from local_cloud.run_folder import RunFolder, read_lines
from local_cloud.run_log import RunLog
from local_cloud.run_result import RunResult, Watch
from local_cloud.spending import Spending
from local_cloud.summary import Summary, bytes_moved, epoch_seconds_median, to_json, with_earlier

AT_ONCE = "stopped at once: what came after the last checkpoint is lost"


@dataclass(frozen=True)
class Run:
    """What is to be done, and where. `train` runs to the end and may be cancelled. `earlier`: what the run took before
    it was resumed. `place`: where its results are in the end, if that is not the run folder."""

    job: PreparedJob
    job_id: str
    folder: RunFolder
    train: Callable[[Watch], RunResult]
    origin: Origin = field(default_factory=Origin)
    earlier: Summary | None = None
    place: str | None = None


class RecordedRun:
    """`began`: time.monotonic() of what is paid for."""

    def __init__(self, run: Run, observer: Observer, spending: Spending, *, began: float) -> None:
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
        try:
            return self._of.train(self._watch(ctrl_c))
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
        totals = self._spending.seen() if result is None else result.totals
        seconds = time.monotonic() - self._began
        ages, is_async = asynchrony(totals.counts), run.job.spec.training.mode == "async"
        of_best = next((report for report in log.reports if report.epoch == best), None)
        cost = self._spending.cost(totals, seconds)
        summary = Summary(
            job_id=run.job_id,
            run_dir=run.place or str(self._folder.path),
            state=state,  # type: ignore[arg-type]  # a state in which the training clock ends
            metric_name=run.job.loss.metric,
            test_metric=of_best.test_metric if of_best else None,
            valid_metric=of_best.valid_metric if of_best else None,
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
            cost_usd=cost.usd,
            bill=cost.items,
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

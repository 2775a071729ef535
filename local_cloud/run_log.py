"""What a run has told so far: kept for its summary, and written to the run folder as it comes."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec

from common.epoch_metrics import EpochMetrics
from common.peak_memory import PeakMemory
from common.trace import LeaseDecision, StepRecord, TraceFile
from local_cloud import run_folder
from local_cloud.observer import EpochReport, Observer
from local_cloud.run_folder import JsonLines, RunFolder
from local_cloud.run_result import RunResult


class RunLog:
    """`reports`: of the epochs before, if the run is resumed; what else stands in metrics.jsonl comes again."""

    def __init__(self, folder: RunFolder, observer: Observer, reports: Sequence[EpochReport] = ()) -> None:
        self._observer, self._last_moment = observer, time.monotonic()
        self.reports = list(reports)
        self.tasks = self.restarts = 0
        self.memory = PeakMemory()
        self.left: RunResult | None = None
        """What there was when the run broke off."""
        self._metrics = JsonLines(folder.path / run_folder.METRICS)
        self._trace = TraceFile(folder.path / run_folder.TRACE)
        self._metrics.rewrite(self.reports)

    @property
    def epochs(self) -> int:
        return self.reports[-1].epoch if self.reports else 0

    def epoch_ended(self, ended: EpochMetrics) -> None:
        now, before = time.monotonic(), self._last_moment
        self._last_moment = now
        if ended.epoch <= self.epochs:  # a run that goes on after its last epoch looks at it once more
            self._forget_after(ended.epoch - 1)
        report = EpochReport(**msgspec.structs.asdict(ended), seconds=now - before)
        self.reports.append(report)
        self._metrics.write(report)
        self.memory.sample()
        self._observer.epoch_ended(report)

    def step_done(self, record: StepRecord) -> None:
        self.tasks += bool(record.backend)
        self._trace.write(record)

    def decided(self, decision: LeaseDecision) -> None:
        self._trace.write(decision)

    def rewound(self, epoch: int) -> None:
        """A role was lost: the run goes on after this epoch."""
        self.restarts += 1
        self._forget_after(epoch)

    def cut_short(self, result: RunResult) -> None:
        self.left = result

    def _forget_after(self, epoch: int) -> None:
        self.reports = [report for report in self.reports if report.epoch <= epoch]
        self._metrics.rewrite(self.reports)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._metrics.__exit__(kind, error, at)
        self._trace.__exit__(kind, error, at)

"""Jobs that lose roles: each is killed once, after an epoch, as it is found among this process's children."""

import asyncio
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from common.epoch_metrics import EpochMetrics
from common.errors import DorylusError
from common.trace import StepRecord
from common.weights_hash import weights_sha256
from local_cloud.cluster import ClusterOptions
from local_cloud.prepare import PreparedJob
from local_cloud.restarts import Restarts
from local_cloud.run_folder import new_job_id
from local_cloud.run_result import RunResult, Watch
from tests.cluster.process_list import Process, left_after_a_while, started_by
from tests.cluster.processes import SECONDS
from tests.cluster.real_jobs import Bits


@dataclass
class Restarting:
    """`losses`: (epoch, role), in the order in which they strike; how: of all of them."""

    job: PreparedJob
    options: ClusterOptions
    losses: list[tuple[int, str]]
    how: signal.Signals = signal.SIGKILL
    metrics: list[EpochMetrics] = field(default_factory=list)
    records: list[StepRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rewound: list[int] = field(default_factory=list)
    left: list[RunResult] = field(default_factory=list)
    family: list[Process] = field(default_factory=list)
    own: set[int] = field(default_factory=lambda: {process.pid for process in started_by(os.getpid())})

    def run(self) -> RunResult:
        watch = Watch(
            on_epoch=self._epoch_ended,
            record=self.records.append,
            cut_short=self.left.append,
            rewound=self._rewound,
            note=self.notes.append,
        )

        async def limited() -> RunResult:
            async with asyncio.timeout(SECONDS):
                return await Restarts(self.job, new_job_id("test"), self.options).run(watch)

        try:
            return asyncio.run(limited())
        finally:
            assert not left_after_a_while(self.family)

    def bits(self, result: RunResult) -> Bits:
        assert result.best is not None
        assert result.logits is not None
        last, best = weights_sha256(result.last), weights_sha256(result.best)
        return Bits(last, best, result.logits.tobytes(), tuple(self.metrics))

    def fails(self) -> DorylusError:
        try:
            self.run()
        except DorylusError as error:
            return error
        raise AssertionError("it did not fail")

    def _epoch_ended(self, metrics: EpochMetrics) -> None:
        self.metrics.append(metrics)
        self.family += [process for process in started_by(os.getpid()) if process.pid not in self.own]
        self.own |= {process.pid for process in self.family}
        if self.losses and self.losses[0][0] <= metrics.epoch:
            self._strike(self.losses.pop(0)[1])

    def _strike(self, role: str) -> None:
        """A role of the generation that runs now."""
        alive = [process for process in self.family if process.is_alive and Path(process.log).stem == role]
        os.kill(alive[-1].pid, self.how)

    def _rewound(self, epoch: int) -> None:
        self.rewound.append(epoch)
        self.metrics = [metrics for metrics in self.metrics if metrics.epoch <= epoch]

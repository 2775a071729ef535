"""Jobs whose roles are processes, run by this one as their launcher, and the same job in this process."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from common.epoch_metrics import EpochMetrics
from common.trace import StepRecord
from common.weights_hash import weights_sha256
from local_cloud.cluster import Cluster, ClusterOptions
from local_cloud.in_process import run_in_process
from local_cloud.observer import Silent
from local_cloud.prepare import PreparedJob, prepare_job
from local_cloud.run_folder import new_job_id
from local_cloud.run_result import RunResult, Watch
from tests.cluster.real_jobs import Bits
from tests.local_cloud.jobs import ROOT, load

SECONDS = 300
"""Of one run, on a machine that has much else to do."""


@dataclass(frozen=True)
class Ran:
    bits: Bits
    result: RunResult
    records: tuple[StepRecord, ...]

    @property
    def busy(self) -> frozenset[int]:
        """Graph servers that ran a tensor task."""
        return frozenset(record.server for record in self.records if record.backend)


def prepared(target: str, settings: dict[str, str], cache_dir: Path) -> PreparedJob:
    """Settings by the full name of the key."""
    return prepare_job(load(target, settings).spec, base_folder=ROOT, cache_dir=cache_dir, observer=Silent())


def run_processes(job: PreparedJob, options: ClusterOptions | None = None) -> Ran:
    cluster = Cluster(job, new_job_id("test"), options)

    async def run(watch: Watch) -> RunResult:
        async with asyncio.timeout(SECONDS):
            return await cluster.run(watch)

    return _ran(lambda watch: asyncio.run(run(watch)))


def run_here(job: PreparedJob) -> Ran:
    return _ran(lambda watch: run_in_process(job, watch))


def _ran(run) -> Ran:
    metrics: list[EpochMetrics] = []
    records: list[StepRecord] = []
    result = run(Watch(on_epoch=metrics.append, record=records.append))
    assert result.best is not None
    assert result.logits is not None
    bits = Bits(weights_sha256(result.last), weights_sha256(result.best), result.logits.tobytes(), tuple(metrics))
    return Ran(bits, result, tuple(records))

"""Whole jobs in this process, and what must be the same however many roles run them."""

from dataclasses import dataclass
from pathlib import Path

from common.epoch_metrics import EpochMetrics
from common.trace import StepRecord
from common.weights_hash import weights_sha256
from common.wire.channel import Faults
from local_cloud.in_process import RunResult, Saving, run_in_process
from local_cloud.observer import Silent
from local_cloud.prepare import prepare_job
from local_cloud.run_result import Watch
from tests.local_cloud.jobs import ROOT, load

CORA = {"training.num_epochs": "2", "cut.num_intervals": "12"}


@dataclass(frozen=True)
class Bits:
    """What two runs of one job have in common, to the last bit."""

    last: str
    best: str
    logits: bytes
    metrics: tuple[EpochMetrics, ...]


@dataclass(frozen=True)
class Trained:
    bits: Bits
    result: RunResult
    busy: frozenset[int]
    """Graph servers that ran a tensor task."""


def train(target: str, settings: dict[str, str], cache_dir: Path, faults: Faults | None = None) -> Trained:
    """Settings by the full name of the key."""
    job = prepare_job(load(target, settings).spec, base_folder=ROOT, cache_dir=cache_dir, observer=Silent())
    metrics: list[EpochMetrics] = []
    records: list[StepRecord] = []
    watch, saving = Watch(on_epoch=metrics.append, record=records.append), Saving(str(cache_dir / "checkpoints"))
    result = run_in_process(job, watch, faults=faults, saving=saving)
    assert result.best is not None
    assert result.logits is not None
    bits = Bits(weights_sha256(result.last), weights_sha256(result.best), result.logits.tobytes(), tuple(metrics))
    return Trained(bits, result, frozenset(record.server for record in records if record.backend))

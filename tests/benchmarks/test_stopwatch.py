"""What is measured between the ends of two epochs."""

import subprocess
import sys

import pytest

from benchmarks.stopwatch import Stopwatch, Window, processor_seconds
from common.epoch_metrics import EpochMetrics
from common.trace import StepRecord

BURNS = "import time; t = time.process_time()\nwhile time.process_time() - t < 0.3: pass\nprint(flush=True); input()"


def record(pass_: str, seconds: float, *, backend: str = "") -> StepRecord:
    """Its work began 0.1 s after the decision, and its result was taken as soon as it was done."""
    return StepRecord(
        pass_=pass_, step="Gather 1", position=0, interval=0, server=0, backend=backend,
        created=5.0, started=5.1, ended=5.1 + seconds, received=5.1 + seconds,
    )  # fmt: skip


def test_steps_of_the_measured_epochs_count():
    stopwatch = Stopwatch(Window(before=2, measured=2, after=1))
    for epoch in range(1, 6):
        stopwatch.epoch_ended(EpochMetrics(epoch=epoch, loss=1.0))
        stopwatch.record(record(f"train {epoch}", 0.4 if epoch in (3, 4) else 100.0, backend="lambda"))
        stopwatch.record(record(f"train {epoch}", 0.1 if epoch in (3, 4) else 100.0))
    stopwatch.record(record("evaluate 4", 100.0, backend="lambda"))
    found = stopwatch.read(1, {"relaunches": 2})
    assert (found.task, found.away, found.graph) == pytest.approx((0.4, 0.5, 0.2))
    assert found.counts == {"relaunches": 2}
    assert found.waiting == pytest.approx(found.epoch - 0.7)


def test_processor_time_is_that_of_the_processes_below():
    before = processor_seconds()
    with subprocess.Popen([sys.executable, "-c", BURNS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        spent = processor_seconds() - before
        child.communicate(b"\n")
    assert spent >= 0.29

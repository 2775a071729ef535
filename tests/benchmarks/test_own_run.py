"""Our own runs: what is read off a trace, and a real one."""

from pathlib import Path

import pytest

from benchmarks.graphs import Recipe
from benchmarks.own_run import epoch_seconds, flags_of, overhead, own_run, resolved
from common.trace import StepRecord

TINY = Recipe("blocks", 300, 1500, num_features=8, num_classes=3, train=0.5)
SETTINGS = {"model.name": "gcn", "model.hidden_size": "4"}


def record(epoch: int, created: float, ended: float, *, server: int = 0) -> StepRecord:
    """Work begins 0.1 s after the decision."""
    return StepRecord(
        pass_=f"train {epoch}", step="Gather 1", position=0, interval=0, server=server,
        created=created, started=created + 0.1, ended=ended, received=ended,
    )  # fmt: skip


RECORDS = [
    *(record(1, 0.0, 0.5), record(1, 0.2, 1.0)),
    *(record(2, 2.0, 2.4), record(2, 2.2, 2.5), record(2, 2.8, 3.4)),
    record(3, 4.0, 4.2),
    *(record(1, 9.0, 9.5, server=1), record(2, 9.6, 9.7, server=1)),
]


def test_an_epoch_lasts_until_the_next_begins_on_one_server():
    assert epoch_seconds(RECORDS) == pytest.approx((2.0, 2.0))


def test_overhead_is_what_no_step_is_at_work_for():
    """Of epoch 2: from 2.1 to 2.5, and from 2.9 to 3.4."""
    found = overhead(RECORDS)
    assert (found.seconds, found.hops) == (pytest.approx(1.1), 2)


def test_settings_become_flags():
    assert flags_of({"model.name": "gat", "training.num_epochs": "3"}) == ["--model", "gat", "--num-epochs", "3"]


def test_a_run_is_the_whole_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = own_run(TINY, SETTINGS, {}, num_epochs=4, limit=300)
    assert found.why == ""
    assert len(found.seconds) == len(found.losses) == 4
    assert min(found.seconds) > 0
    assert found.peak_bytes > 50_000_000
    assert found.overhead is not None
    assert found.overhead.hops == 7
    assert found.kernels.startswith("blas ")


def test_a_run_that_is_refused_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = own_run(TINY, SETTINGS, {"training.lr": "-1"}, num_epochs=4, limit=300)
    assert found.seconds == ()
    assert "lr" in found.why


def test_the_model_fills_its_defaults_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert resolved(TINY, {"model.name": "gat"}).model.activation == "elu"

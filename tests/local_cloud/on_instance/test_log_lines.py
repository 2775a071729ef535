"""A line is JSON with job and role; one per epoch carries metrics as CloudWatch reads them."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_cloud.observer import EpochReport
from local_cloud.on_instance import log_lines
from local_cloud.on_instance.log_lines import CloudObserver, JsonLines, forward
from local_cloud.run_result import Load, Status, Totals

REPORT = EpochReport(
    epoch=3, loss=0.5, train_accuracy=None, valid_accuracy=None, test_accuracy=None, exact=True, seconds=1.25
)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[dict[str, Any]]]:
    caplog.set_level(logging.INFO)
    formatter = JsonLines()
    formatter.said |= {"job_id": "job-1", "role": "graph0"}
    return lambda: [json.loads(formatter.format(record)) for record in caplog.records]


def test_words(lines):
    CloudObserver("small").note("a\nnote with %s and ü")
    (line,) = lines()
    assert (line["job_id"], line["role"], line["level"]) == ("job-1", "graph0", "WARNING")
    assert line["text"] == "a\nnote with %s and ü"


def test_an_epochs_metrics(lines):
    CloudObserver("small").epoch_ended(REPORT)
    (line,) = lines()
    assert "text" not in line
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Dorylus"
    assert directive["Dimensions"] == [["Stack"]]
    assert {metric["Name"] for metric in directive["Metrics"]} == {"EpochSeconds", "TrainLoss"}  # nothing was valid
    assert (line["Stack"], line["EpochSeconds"], line["TrainLoss"], line["epoch"]) == ("small", 1.25, 0.5, 3)
    assert line["_aws"]["Timestamp"] > 1_700_000_000_000


def test_load_once_a_minute(lines, monkeypatch):
    observer, now = CloudObserver("small"), 0.0
    monkeypatch.setattr(log_lines.time, "monotonic", lambda: now)
    for now in (1000.0, 1001.0, 1061.0):
        observer.status(Status(3, now / 1000))
        observer.load(Load(3, 2, Totals()))
    assert [(line["OpenLeases"], line["CostUsd"]) for line in lines()] == [(2, 1.0), (2, 1.061)]


def test_a_roles_own_words(lines, tmp_path: Path):
    forward(tmp_path / "nothing.log", "graph1")
    (tmp_path / "graph0.log").write_text("one\ntwo\n")
    forward(tmp_path / "graph0.log", "graph0")
    assert [line["text"] for line in lines()] == ["graph0: one", "graph0: two"]

"""What an instance says: a JSON line each, with job, generation and role; some carry metrics for CloudWatch.

Source of the embedded metric format:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

import json
import logging
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from local_cloud.observer import EpochReport
from local_cloud.run_result import Load, Status

LOG = logging.getLogger("dorylus.instance")
METRICS = logging.getLogger("dorylus.metrics")
LOAD_SECONDS = 60.0
NAMESPACE = "Dorylus"
UNITS = {"EpochSeconds": "Seconds", "OpenLeases": "Count"}


class JsonLines(logging.Formatter):
    def __init__(self, **said: object) -> None:
        super().__init__()
        self.said: dict[str, object] = {**said}
        """On each line. `role` comes when it is known."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {"time": round(record.created, 3), "level": record.levelname, **self.said}
        if isinstance(record.args, Mapping) and record.name == METRICS.name:
            line |= record.args
        else:
            line["text"] = record.getMessage()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def log_to_stdout(lines: JsonLines) -> None:
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(lines)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("botocore").setLevel(logging.WARNING)


def forward(log: Path, role: str) -> None:
    """A role's own words, when it has ended."""
    for line in log.read_text(errors="replace").splitlines() if log.exists() else ():
        LOG.info("%s: %s", role, line)


class CloudObserver:
    """Whoever watches a job of a deployment watches its logs and its dashboard. `stack`: the metrics' dimension."""

    def __init__(self, stack: str) -> None:
        self._stack, self._next_load, self._cost_usd = stack, 0.0, 0.0

    def doing(self, what: str) -> None:
        LOG.info("%s", what)

    def training_starts(self, job_id: str, run_dir: str, num_epochs: int) -> None:
        LOG.info("training %s for %s epochs, results in %s", job_id, num_epochs, run_dir)

    def epoch_ended(self, report: EpochReport) -> None:
        values = {"EpochSeconds": report.seconds, "TrainLoss": report.loss, "ValidMetric": report.valid_metric}
        self._emit({name: value for name, value in values.items() if value is not None}, {"epoch": report.epoch})

    def status(self, status: Status) -> None:
        self._cost_usd = status.cost_usd

    def note(self, text: str) -> None:
        LOG.warning("%s", text)

    def load(self, load: Load) -> None:
        """Once a minute; after the status of the same moment."""
        if (now := time.monotonic()) >= self._next_load:
            self._next_load = now + LOAD_SECONDS
            self._emit({"OpenLeases": load.open_leases, "CostUsd": self._cost_usd}, {})

    def _emit(self, values: Mapping[str, float], besides: Mapping[str, object]) -> None:
        metrics = [{"Name": name, "Unit": UNITS.get(name, "None")} for name in values]
        directive = {"Namespace": NAMESPACE, "Dimensions": [["Stack"]], "Metrics": metrics}
        envelope = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
        METRICS.info("", {"_aws": envelope, "Stack": self._stack, **values, **besides})

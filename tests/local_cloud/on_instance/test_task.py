"""What the state machine hears, by the token of its own generation, and of a job that is stopped while it is cut."""

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from common.cloud_names import Phase
from common.errors import ClusterError
from local_cloud.on_instance import task as module
from local_cloud.on_instance.bucket import Bucket
from local_cloud.on_instance.cutter import Cutter
from local_cloud.on_instance.data import Data
from local_cloud.on_instance.expenses import TEARDOWN_SECONDS
from local_cloud.on_instance.job_record import JobRecords, Superseded
from local_cloud.on_instance.settings import Settings
from local_cloud.on_instance.task import Task


class StateMachine:
    """Step Functions' client, of which moto's server knows the tokens and moto in this process nothing."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.is_past = False

    def send_task_success(self, **said: Any) -> None:
        self._hear(said)

    def send_task_failure(self, **said: Any) -> None:
        self._hear(said)

    def send_task_heartbeat(self, **said: Any) -> None:
        self._hear(said)

    def _hear(self, said: dict[str, Any]) -> None:
        if self.is_past:
            raise ClientError({"Error": {"Code": "TaskTimedOut", "Message": "too late"}}, "SendTask")
        self.heard.append(said)


@pytest.fixture
def states() -> StateMachine:
    return StateMachine()


@pytest.fixture
def records(cloud, aws, instance) -> JobRecords:
    cloud.record(generation=1, phase="train", state="Training")
    return JobRecords(aws, "small-jobs", instance())


@pytest.fixture
def task(aws, states, records, monkeypatch) -> Task:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.02)
    return Task(replace(aws, states=states), records)


def test_the_token_may_come_later(cloud, task, states):
    later = threading.Timer(0.3, lambda: cloud.jobs.set("job-1", {"task_token": "t-1"}))
    later.start()
    task.done({"state": "Completed"})
    later.join()
    assert states.heard == [{"taskToken": "t-1", "output": '{"state": "Completed"}'}]


def test_no_token_at_all(task, monkeypatch):
    monkeypatch.setattr(module, "TOKEN_SECONDS", 0.1)
    with pytest.raises(ClusterError, match="does not wait for this job"):
        task.failed("PeerLost", "graph1 is gone")


def test_the_next_generations_token_is_not_ours(cloud, task, states):
    cloud.record(generation=2, phase="train", state="Training", task_token="t-2")
    with pytest.raises(Superseded):
        task.failed("PeerLost", "graph1 is gone")
    assert states.heard == []


def test_a_machine_that_is_past_this_is_no_error(cloud, task, records, states):
    cloud.jobs.set("job-1", {"task_token": "t-1"})
    task.beat(records.read())
    states.is_past = True
    task.beat(records.read())
    task.failed("PeerLost", "graph1 is gone")
    assert states.heard == [{"taskToken": "t-1"}]


def test_a_cause_is_cut_to_what_the_service_takes(cloud, task, states):
    cloud.jobs.set("job-1", {"task_token": "t-1"})
    task.failed("DatasetError", "x" * 100_000)
    assert len(states.heard[0]["cause"]) == module.MOST_CAUSE


def test_a_stop_ends_the_cutter(cloud, aws, instance, states, tmp_path: Path):
    cloud.record(generation=0, phase="cut", state="Stopping", stop=True, task_token="t-0")
    records = JobRecords(aws, "small-jobs", instance(generation=0, phase=Phase.CUT))
    data = Data(aws, records.read(), Bucket(aws, cloud.bucket), tmp_path)
    task, settings = Task(replace(aws, states=states), records), Settings.read(os.environ)
    with pytest.raises(Superseded, match="stopped while its graph was cut"):
        Cutter(instance(), records, task, data, settings)._beat()
    assert states.heard[-1]["error"] == "StopRequested"


def test_a_cutter_that_has_used_the_budget_up_ends(cloud, aws, instance, states, tmp_path: Path):
    """A c7g.large for an hour, and the minute of its end."""
    usd = 0.0725 * (3600 + TEARDOWN_SECONDS) / 3600
    records = JobRecords(aws, "small-jobs", instance(generation=0, phase=Phase.CUT))
    task, settings = Task(replace(aws, states=states), records), Settings.read(os.environ)
    launched = replace(instance(), launched=time.time() - 3600)
    for cap in (usd + 0.01, usd - 0.01):
        more = {"max_cost_usd": str(cap), "launched_type": "c7g.large", "task_token": "t-0"}
        cloud.record(generation=0, phase="cut", state="Starting", **more)
        data = Data(aws, records.read(), Bucket(aws, cloud.bucket), tmp_path)
        cutter = Cutter(launched, records, task, data, settings)
        if cap > usd:
            cutter._beat()
            continue
        with pytest.raises(Superseded, match=r"cutting the graph has cost 0\.07\d\d USD already"):
            cutter._beat()
    assert states.heard[-1]["error"] == "StopRequested"
    assert states.heard[-1]["cause"].startswith("budget.max_cost_usd = 0.06")

"""The whole of it on this machine: moto's server is AWS, and its engine runs the real state machine with the real
functions; instances are processes; tensor functions are the local Lambda service's.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from common.allocator import MALLOC
from common.cloud_names import JobState, execution_name, key_parameter
from lambda_functions import job_trigger, stop_job
from local_cloud.lambda_process import HANDLER
from local_cloud.lambda_service.settings import FunctionConfig, ServiceConfig
from tests.infra.calls import Calls, acting_as, recording
from tests.integration.calls import SERVERS, recorded
from tests.integration.fleet import ROOT, Fleet
from tests.lambda_functions.job_cloud import ZONES, JobCloud
from tests.lambda_functions.job_machine import job_machine
from tests.local_cloud.lambda_service.running import Running, running

JOB_SECONDS = 400
"""A job takes half a minute on a quiet machine."""
LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class World:
    cloud: JobCloud
    fleet: Fleet
    functions: Running
    calls: Calls
    """Of all servers and functions so far."""
    billed: Counter[str]
    """Requests of servers to S3 so far."""

    def submit(self, key: str, spec: str) -> str:
        """The job's id."""
        return str(self.tell(self.cloud.put(key, spec))["job_id"])

    def tell(self, event: dict[str, Any]) -> dict[str, str]:
        """The trigger of an upload."""
        with acting_as("job-trigger"):
            return job_trigger.handler(event, None)

    def stop(self, job_id: str) -> None:
        event = self.cloud.put(f"runs/{job_id}/STOP", "")
        with acting_as("stop-job"):
            stop_job.handler(event, None)

    def until(self, is_so: Callable[[], object], job_id: str) -> None:
        deadline = time.monotonic() + JOB_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, self.story(job_id)
            time.sleep(LOOK_SECONDS)

    def end(self, job_id: str) -> dict[str, Any]:
        """Its record, when it is over and everything is torn down."""
        self.until(lambda: self.execution(job_id) != "RUNNING", job_id)
        record = self.cloud.jobs.get(job_id)
        assert JobState(record["state"]).is_final, self.story(job_id)
        self.until(lambda: all(one.process.poll() is not None for one in self.fleet.of(job_id)), job_id)
        return record

    def execution(self, job_id: str) -> str:
        return self.cloud.executions().get(execution_name(job_id), "")

    def history(self, job_id: str) -> str:
        """What the state machine has seen."""
        arn = f"{self.cloud.machine.replace(':stateMachine:', ':execution:')}:{execution_name(job_id)}"
        events = boto3.client("stepfunctions").get_execution_history(executionArn=arn, maxResults=1000)["events"]
        return json.dumps(events, default=str)

    def metrics(self, job_id: str) -> list[dict[str, Any]]:
        key = f"runs/{job_id}/metrics.jsonl"
        return [json.loads(line) for line in self.read(key).splitlines()] if key in self.cloud.keys("runs/") else []

    def url(self, key: str) -> str:
        return f"s3://{self.cloud.bucket}/{key}"

    def server_key(self, job_id: str) -> str:
        """The secret half, as soon as it is made."""
        name, ssm = key_parameter("small", job_id), boto3.client("ssm")
        self.until(lambda: ssm.describe_parameters()["Parameters"], job_id)
        parameter = ssm.get_parameter(Name=name, WithDecryption=True)["Parameter"]
        assert parameter["Type"] == "SecureString"
        return str(json.loads(parameter["Value"])["secret"])

    def read(self, key: str) -> bytes:
        body: bytes = boto3.client("s3").get_object(Bucket=self.cloud.bucket, Key=key)["Body"].read()
        return body

    def story(self, job_id: str) -> str:
        record = self.cloud.jobs.find(job_id)
        return f"{record}\n{self.cloud.keys('runs/')}\n{self.fleet.logs()}"


@contextmanager
def world(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[World]:
    with (
        job_machine(monkeypatch) as cloud,
        running(folder, _functions()) as functions,
        recording() as calls,
        recorded(monkeypatch, calls, billed := Counter[str]()),
    ):
        environment = {"AWS_ACCESS_KEY_ID": SERVERS, "DORYLUS_LAMBDA_ENDPOINT": functions.url, **MALLOC}
        with Fleet(cloud, folder, environment) as fleet:
            yield World(cloud, fleet, functions, calls, billed)


def _functions() -> ServiceConfig:
    """The tensor function of each zone."""
    functions = tuple(
        FunctionConfig(
            name=f"small-tensor-{number}",
            handler=HANDLER,
            task_root=str(ROOT),
            timeout_seconds=270,
            environment=dict(MALLOC),
        )
        for number, _ in enumerate(ZONES)
    )
    return ServiceConfig(functions=functions, concurrency=4, init_seconds=60)

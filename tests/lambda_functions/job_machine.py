"""The job's state machine in moto's server: its engine executes the real definition, and calls the real functions."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

import boto3
import moto.awslambda.models
import pytest
from moto.core.responses import EmptyResult
from moto.server import ThreadedMotoServer
from moto.stepfunctions.responses import StepFunctionResponse

from infra.orchestration import definition
from lambda_functions import collect, launch_servers, sweep
from tests.infra.calls import acting_as
from tests.lambda_functions.job_cloud import JobCloud, deploy, empty_function, speak_as_nobody

HANDLERS = {"launch-servers": launch_servers.handler, "collect": collect.handler, "sweep": sweep.handler}
LONGEST_HOURS = 48


@contextmanager
def job_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[JobCloud]:
    """A deployment in a server that every process of this machine can reach, by AWS_ENDPOINT_URL."""
    speak_as_nobody(monkeypatch)
    monkeypatch.setattr(moto.awslambda.models.LambdaFunction, "_invoke_lambda", _run_ours)
    monkeypatch.setattr(StepFunctionResponse, "send_task_failure", _with_cause)
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    url = f"http://localhost:{port}"
    try:
        monkeypatch.setenv("MOTO_PORT", str(port))
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        urlopen(Request(f"{url}/moto-api/reset", method="POST")).close()
        _post(f"{url}/moto-api/config", {"stepfunctions": {"execute_state_machine": True}})
        cloud = deploy(monkeypatch)
        _define(cloud.machine)
        yield cloud
    finally:
        # All servers of a process share their settings, too, and others only look whether a machine was started.
        _post(f"{url}/moto-api/config", {"stepfunctions": {"execute_state_machine": False}})
        server.stop()


def _define(machine: str) -> None:
    """In place of the machine that only exists."""
    role = "arn:aws:iam::123456789012:role/small"
    names = {"Launch": "launch-servers", "Collect": "collect", "Sweep": "sweep"}
    places = {place: empty_function(name, role) for place, name in names.items()}
    places |= {"JobsTable": os.environ["DORYLUS_JOBS_TABLE"], "Topic": os.environ["DORYLUS_TOPIC"]}
    words = re.sub(r"\$\{(\w+)\}", lambda match: places[match[1]], definition(LONGEST_HOURS))
    boto3.client("stepfunctions").update_state_machine(stateMachineArn=machine, definition=words, roleArn=role)


def _run_ours(function: Any, event: Any = None) -> tuple[str, bool, str]:
    """In place of moto's docker: (result, whether it is an error, log)."""
    try:
        with acting_as(function.function_name):
            return json.dumps(HANDLERS[function.function_name](event, None)), False, ""
    except Exception as error:
        return json.dumps({"errorMessage": str(error), "errorType": type(error).__name__}), True, ""


def _with_cause(self: StepFunctionResponse) -> EmptyResult:
    """moto forgets the cause."""
    token, error, cause = (self._get_param(name) for name in ("taskToken", "error", "cause"))
    self.stepfunction_backend.send_task_failure(token, error=error, cause=cause)
    return EmptyResult()


def _post(url: str, words: object) -> None:
    headers = {"Content-Type": "application/json"}
    urlopen(Request(url, data=json.dumps(words).encode(), method="POST", headers=headers)).close()

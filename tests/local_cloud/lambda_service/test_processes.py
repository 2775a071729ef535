"""Nothing outlives the service: not after its end, not after `kill -9`, idle or busy, with children or without."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import botocore.exceptions
import msgspec
import pytest

from local_cloud.lambda_service.settings import ServiceConfig
from tests.local_cloud.lambda_service.meeting import Meeting, Met
from tests.local_cloud.lambda_service.running import DEADLINE_SECONDS, ROOT, Running, function, running

FUNCTIONS = (function("keep_socket"), function("meet"), function("start_child"))


def idle_busy_and_child(service: Running, meeting: Meeting, caller: ThreadPoolExecutor) -> list[Met]:
    service.invoke("keep_socket", meeting.event)
    idle = meeting.meet()
    service.invoke("start_child", meeting.event)
    child = meeting.meet()
    caller.submit(service.invoke, "meet", meeting.event)
    return [idle, child, meeting.meet()]


def test_kill_9_of_the_service_leaves_no_worker(tmp_path: Path, meeting: Meeting, runtime: str):
    config = ServiceConfig(functions=FUNCTIONS, runtime=runtime)
    with running(tmp_path, config) as service, ThreadPoolExecutor(1) as caller:
        left = idle_busy_and_child(service, meeting, caller)
        service.process.kill()
        for met in left:
            met.wait_for_its_end()


def test_a_worker_that_does_not_stand_still_sees_the_end_of_its_lifeline(tmp_path: Path, meeting: Meeting):
    with running(tmp_path, ServiceConfig(functions=FUNCTIONS, freeze_idle=False)) as service:
        service.invoke("start_child", meeting.event)
        child = meeting.meet()
        service.process.kill()
        child.wait_for_its_end()


@pytest.mark.parametrize("how", ["stdin ends", "SIGTERM"])
def test_a_service_that_ends_takes_its_workers_along_and_answers_first(tmp_path: Path, meeting: Meeting, how: str):
    """Ctrl-C changes nothing: whoever started it gets the same signal, and decides."""
    with running(tmp_path, ServiceConfig(functions=FUNCTIONS)) as service, ThreadPoolExecutor(2) as caller:
        service.process.send_signal(signal.SIGINT)
        left = idle_busy_and_child(service, meeting, caller)
        call = caller.submit(service.invoke, "meet", meeting.event)
        left.append(meeting.meet())
        if how == "SIGTERM":
            service.process.terminate()
        else:
            service.close_stdin()
        for met in left:
            met.wait_for_its_end()
        assert call.result().body["errorType"] == "Runtime.ExitError"
        assert service.process.wait(DEADLINE_SECONDS) == 0
        with pytest.raises(botocore.exceptions.EndpointConnectionError):
            service.invoke("meet", meeting.event)


def start(*arguments: str, stdin: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local_cloud.lambda_service", *arguments]
    return subprocess.run(command, cwd=ROOT, stdin=stdin, capture_output=True, text=True, timeout=60, check=False)


def test_stdin_that_never_ends_is_refused(tmp_path: Path):
    file = tmp_path / "lambda.json"
    file.write_bytes(msgspec.json.encode(ServiceConfig(functions=FUNCTIONS)))
    with open(file, encoding="utf-8") as stdin:
        run = start("--config", str(file), stdin=stdin.fileno())
    assert run.returncode == 2
    assert "stdin is a file" in run.stderr
    assert "Traceback" not in run.stderr


def test_without_a_descriptor_the_port_goes_to_stdout(tmp_path: Path):
    file = tmp_path / "lambda.json"
    file.write_bytes(msgspec.json.encode(ServiceConfig(functions=FUNCTIONS)))
    read_end, write_end = os.pipe()
    os.close(write_end)
    run = start("--config", str(file), stdin=read_end)
    os.close(read_end)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.strip().isdecimal()


def test_a_wrong_configuration_is_told_in_one_line(tmp_path: Path):
    file = tmp_path / "lambda.json"
    file.write_text('{"functions": [], "concurency": 3}', encoding="utf-8")
    run = start("--config", str(file), stdin=subprocess.DEVNULL)
    assert run.returncode == 2
    assert "Object contains unknown field `concurency`" in run.stderr
    assert "Traceback" not in run.stderr

"""The same handlers under AWS's own Runtime Interface Emulator and under ours, with either runtime client: they must be
told the same, and their callers too.

The emulator is a program of AWS's and not part of this project: DORYLUS_RIE names it, or it lies in .rie/aws-lambda-rie
of the checkout; without it these tests are skipped. What it cannot do is not compared: two invocations at once,
X-Amz-Function-Error, events, log tails.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.local_cloud.lambda_service.running import DEADLINE_SECONDS, HANDLERS, ROOT, Running

OWN_CLIENT = ROOT / "local_cloud" / "lambda_service" / "runtime_client.py"


EMULATOR = Path(os.environ.get("DORYLUS_RIE") or ROOT / ".rie" / "aws-lambda-rie")
pytestmark = pytest.mark.skipif(not EMULATOR.is_file(), reason="AWS's emulator is not here (DORYLUS_RIE)")


def free_port() -> int:
    """The emulator cannot choose one itself."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port: int = door.getsockname()[1]
    return port


@contextmanager
def emulated(handler: str, runtime: str) -> Iterator[str]:
    """The address to invoke `handler` at."""
    port = free_port()
    address, api = f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}"
    command = [str(EMULATOR), "--runtime-interface-emulator-address", address, "--runtime-api-address", api]
    own = f"import runpy, sys; runpy.run_path({str(OWN_CLIENT)!r})['run'](sys.argv[1])"
    client = ["-m", "awslambdaric"] if runtime == "awslambdaric" else ["-c", own]
    command += ["--log-level", "error", sys.executable, *client, handler]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(HANDLERS),
        "LAMBDA_TASK_ROOT": str(HANDLERS),
        "AWS_LAMBDA_FUNCTION_TIMEOUT": "1",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
    }
    process = subprocess.Popen(command, cwd=HANDLERS, env=environment, stderr=subprocess.PIPE, process_group=0)
    try:
        yield f"http://{address}/2015-03-31/functions/function/invocations"
    finally:
        os.killpg(process.pid, 9)
        process.communicate()


def ask(url: str, event: Any) -> str:
    """The emulator listens soon after it started, and says nothing when it does. Its 502 has a body, too."""
    request = urllib.request.Request(url, data=json.dumps(event).encode(), method="POST")
    for _ in range(400):
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()
        except urllib.error.URLError:
            time.sleep(0.05)
    raise AssertionError("the emulator did not start")


def without_ids(text: str) -> str:
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("echo", {"text": "∇ größer", "numbers": [1, 2.5, None]}),
        ("fail", {"what": "noise"}),
        ("no_json", {}),
        ("large", {"bytes": 100_000}),
    ],
)
def test_a_handler_is_told_the_same_and_says_the_same(service: Running, runtime: str, name: str, event: Any):
    with emulated(f"handlers.{name}", runtime) as url:
        theirs = json.loads(without_ids(ask(url, event)))
    ours = json.loads(without_ids(json.dumps(service.invoke(name, event).body)))
    assert ours == theirs


def test_the_context_has_the_same_shape(service: Running, runtime: str):
    with emulated("handlers.describe", runtime) as url:
        theirs = json.loads(ask(url, {}))
    ours = service.invoke("describe").body
    assert ours.keys() == theirs.keys()
    assert {key: type(value) for key, value in ours.items()} == {key: type(value) for key, value in theirs.items()}
    assert (ours["version"], ours["memory"]) == (theirs["version"], theirs["memory"])


@pytest.mark.parametrize("name", ["no_module", "no_handler", "no_dot"])
def test_a_function_that_cannot_start_gives_the_same_reason(service: Running, runtime: str, name: str):
    handler = service.get(f"/2015-03-31/functions/{name}/configuration")["Handler"]
    with emulated(handler, runtime) as url:
        theirs = json.loads(ask(url, {}))
    ours = service.invoke(name).body
    assert (ours["errorType"], ours["errorMessage"]) == (theirs["errorType"], theirs["errorMessage"])


def test_a_timeout_in_the_same_words(service: Running, runtime: str):
    with emulated("handlers.wait", runtime) as url:
        theirs = ask(url, {"seconds": 60})
    ours = service.invoke("wait", {"seconds": 60}).body["errorMessage"]
    assert theirs == "Task timed out after 1.00 seconds"
    assert ours.endswith(theirs.replace("1.00", "0.30"))

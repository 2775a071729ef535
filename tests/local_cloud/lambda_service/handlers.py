"""The functions the tests run: what well-behaved and badly behaved Lambda functions do. Standard library only.

A function that must be met in the middle dials a socket of the test (see meeting.py): it says who it is, waits for a
word and only then goes on; its end of the socket falls when the process does.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

COUNT = [0]
KEPT: list[Any] = []
HEARD = threading.Event()


def echo(event: Any, context: Any) -> Any:
    return event


def count(event: Any, context: Any) -> dict[str, int]:
    """A warm worker remembers."""
    COUNT[0] += 1
    return {"pid": os.getpid(), "count": COUNT[0]}


def environment(event: Any, context: Any) -> dict[str, Any]:
    return {"environment": dict(os.environ), "path": sys.path, "folder": os.getcwd()}


def describe(event: Any, context: Any) -> dict[str, Any]:
    return {
        "request_id": context.aws_request_id,
        "arn": context.invoked_function_arn,
        "name": context.function_name,
        "version": context.function_version,
        "memory": context.memory_limit_in_mb,
        "log_group": context.log_group_name,
        "remaining": context.get_remaining_time_in_millis(),
        "has_client_context": context.client_context is not None,
    }


def stay(event: Any, context: Any) -> None:
    time.sleep(event["seconds"])


def fail(event: Any, context: Any) -> None:
    raise ValueError(f"cannot bear {event['what']}")


def say(event: Any, context: Any) -> None:
    for line in event["lines"]:
        sys.stdout.write(line + "\n")
    sys.stderr.write("the end\n")


def leave(event: Any, context: Any) -> None:
    os._exit(event["code"])


def kill_itself(event: Any, context: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def wait(event: Any, context: Any) -> str:
    time.sleep(event["seconds"])
    return "waited"


def grow(event: Any, context: Any) -> int:
    KEPT.append(bytearray(os.urandom(1024)) * (1024 * event["mb"]))
    return len(KEPT[-1])


def large(event: Any, context: Any) -> str:
    """A string whose JSON has `bytes` bytes."""
    return "x" * (event["bytes"] - 2)


def no_json(event: Any, context: Any) -> object:
    return object()


def meet(event: Any, context: Any) -> dict[str, Any]:
    with socket.create_connection(("127.0.0.1", event["port"])) as there:
        _introduce(there)
        word = there.recv(1)
    return {"pid": os.getpid(), "word": word.decode(), "api": os.environ["AWS_LAMBDA_RUNTIME_API"]}


def keep_socket(event: Any, context: Any) -> int:
    """Its end of the socket stays open as long as the process lives."""
    there = socket.create_connection(("127.0.0.1", event["port"]))
    _introduce(there)
    KEPT.append(there)
    return os.getpid()


def start_child(event: Any, context: Any) -> int:
    """A process of its own that holds the socket, and would sleep for a long time."""
    with socket.create_connection(("127.0.0.1", event["port"])) as there:
        _introduce(there)
        KEPT.append(subprocess.Popen(["sleep", "1000"], pass_fds=[there.fileno()]))
    return os.getpid()


def answer_in_a_thread(event: Any, context: Any) -> int:
    """A thread that gives back every byte it gets, also between invocations, if the process runs then. With
    `until_heard` it returns only after such a byte."""
    if not KEPT:
        there = socket.create_connection(("127.0.0.1", event["port"]))
        _introduce(there)
        KEPT.append(there)
        threading.Thread(target=_give_back, args=(there,), daemon=True).start()
    if event.get("until_heard"):
        HEARD.wait(10)
    return os.getpid()


def _give_back(there: socket.socket) -> None:
    while byte := there.recv(1):
        there.sendall(byte)
        HEARD.set()


def _introduce(there: socket.socket) -> None:
    there.sendall(json.dumps({"pid": os.getpid()}).encode() + b"\n")

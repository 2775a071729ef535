"""Functions that end badly: the caller is told how, in AWS's words, and the next call finds a fresh worker."""

from pathlib import Path

import pytest

from local_cloud.lambda_service.settings import FunctionConfig, ServiceConfig
from tests.local_cloud.lambda_service.running import Running, running


def test_a_timeout(service: Running):
    reply = service.invoke("wait", {"seconds": 60}, LogType="Tail")
    assert (reply.status, reply.error, reply.body["errorType"]) == (200, "Unhandled", "Sandbox.Timedout")
    assert reply.body["errorMessage"].endswith("Error: Task timed out after 0.30 seconds")
    assert reply.log is not None
    assert "Status: timeout" in reply.log
    assert service.invoke("wait", {"seconds": 0}).body == "waited"


@pytest.mark.parametrize(
    ("code", "how"), [(3, "Runtime exited with error: exit status 3"), (0, "Runtime exited without providing a reason")]
)
def test_a_function_that_leaves(service: Running, code: int, how: str):
    reply = service.invoke("leave", {"code": code})
    assert (reply.error, reply.body["errorType"]) == ("Unhandled", "Runtime.ExitError")
    assert reply.body["errorMessage"].endswith(f"Error: {how}")


def test_a_function_that_is_killed(service: Running):
    reply = service.invoke("kill_itself")
    assert reply.body["errorType"] == "Runtime.ExitError"
    assert reply.body["errorMessage"].endswith("Error: Runtime exited with error: signal: killed")


def test_a_function_that_takes_more_memory_than_it_has(service: Running, peak_is_known: None):
    reply = service.invoke("grow", {"mb": 300}, LogType="Tail")
    assert (reply.error, reply.body["errorType"]) == ("Unhandled", "Runtime.OutOfMemory")
    assert reply.log is not None
    assert "Max Memory Used: 128 MB" in reply.log
    assert "Error Type: Runtime.OutOfMemory" in reply.log
    assert service.invoke("grow", {"mb": 10}).body == 10 * 1024 * 1024


def test_a_response_that_is_too_large(service: Running):
    most = 6 * 1024 * 1024 + 100
    assert len(service.invoke("large", {"bytes": most}).body) == most - 2
    reply = service.invoke("large", {"bytes": most + 1})
    assert (reply.error, reply.body["errorType"]) == ("Unhandled", "Function.ResponseSizeTooLarge")
    assert "exceeded maximum allowed payload size (6291556 bytes)" in reply.body["errorMessage"]
    assert service.invoke("large", {"bytes": 10}).body == "x" * 8


@pytest.mark.parametrize(
    ("name", "error_type", "message"),
    [
        ("no_module", "Runtime.ImportModuleError", "Unable to import module 'nowhere_to_be_found'"),
        ("no_handler", "Runtime.HandlerNotFound", "Handler 'nowhere_to_be_found' missing on module 'handlers'"),
        ("no_dot", "Runtime.MalformedHandlerName", "Bad handler 'handlers'"),
    ],
)
def test_a_function_that_cannot_start(service: Running, name: str, error_type: str, message: str):
    reply = service.invoke(name, LogType="Tail")
    assert (reply.status, reply.error, reply.body["errorType"]) == (200, "Unhandled", error_type)
    assert message in reply.body["errorMessage"]
    assert reply.log is not None
    assert error_type in reply.log
    assert not [worker for worker in service.get("/_workers") if worker["function"] == name]


@pytest.mark.parametrize(
    ("name", "error_type", "message"),
    [
        ("wrong_syntax", "Runtime.UserCodeSyntaxError", "Syntax error in module 'wrong_syntax'"),
        ("raises", "KeyError", "'a setting'"),
        ("leaves", "Runtime.ExitError", "Runtime exited with error: exit status 5"),
    ],
)
def test_a_module_that_breaks_while_it_is_imported(service: Running, name: str, error_type: str, message: str):
    reply = service.invoke(name)
    assert (reply.status, reply.error, reply.body["errorType"]) == (200, "Unhandled", error_type)
    assert message in reply.body["errorMessage"]
    assert not [worker for worker in service.get("/_workers") if worker["function"] == name]


def test_a_failed_start_is_billed(service: Running):
    service.invoke("raises")
    record = next(record for record in reversed(service.meter()["records"]) if record["function"] == "raises")
    assert (record["cold_start"], record["error_type"], record["duration_ms"]) == (True, "KeyError", 0.0)
    assert record["billed_ms"] >= record["init_ms"] > 0


def test_a_start_that_takes_too_long_or_too_much_memory(tmp_path: Path, peak_is_known: None):
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(60)\n")
    (tmp_path / "greedy.py").write_text("kept = bytearray(b'x') * (300 << 20)\nimport time\ntime.sleep(60)\n")
    functions = tuple(
        FunctionConfig(name=name, handler=f"{name}.handler", task_root=str(tmp_path), memory_mb=128)
        for name in ("slow", "greedy")
    )
    with running(tmp_path, ServiceConfig(functions=functions, init_seconds=2)) as service:
        slow, greedy = service.invoke("slow"), service.invoke("greedy")
        assert (slow.error, slow.body["errorType"]) == ("Unhandled", "Sandbox.Timedout")
        assert slow.body["errorMessage"].endswith("Task timed out after 2.00 seconds")
        assert (greedy.error, greedy.body["errorType"]) == ("Unhandled", "Runtime.OutOfMemory")
        assert service.get("/_workers") == []

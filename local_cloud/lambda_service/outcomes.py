"""An invocation and how it ended, in the words AWS uses. No I/O here."""

import json
import signal
from dataclasses import dataclass

MAX_RESPONSE_BYTES = 6 * 1024 * 1024 + 100
"""AWS allows a response 100 bytes more than a request."""


@dataclass(frozen=True)
class Invocation:
    """What a worker is asked; `payload` may hold keys and is shown nowhere."""

    request_id: str
    payload: bytes
    function_arn: str
    client_context: str | None
    trace_id: str

    def __repr__(self) -> str:
        return f"Invocation({self.request_id})"


@dataclass(frozen=True)
class Outcome:
    """The body that goes back. `error_type` is None when the function returned a result."""

    body: bytes
    error_type: str | None = None

    def __repr__(self) -> str:
        return f"Outcome({len(self.body)} bytes, {self.error_type})"


def failure(error_type: str, message: str) -> Outcome:
    return Outcome(json.dumps({"errorType": error_type, "errorMessage": message}).encode(), error_type)


def reported(body: bytes) -> Outcome:
    """An error that the function's own side told of: an exception, or why it cannot start."""
    try:
        named = json.loads(body)["errorType"]
    except (ValueError, KeyError, TypeError):
        named = None
    return Outcome(body, named if isinstance(named, str) and named else "Unhandled")


def timed_out(request_id: str, seconds: float) -> Outcome:
    return failure("Sandbox.Timedout", f"RequestId: {request_id} Error: Task timed out after {seconds:.2f} seconds")


def out_of_memory(request_id: str) -> Outcome:
    return failure("Runtime.OutOfMemory", f"RequestId: {request_id} Error: Runtime exited with error: signal: killed")


def response_too_large() -> Outcome:
    return failure(
        "Function.ResponseSizeTooLarge",
        f"Response payload size exceeded maximum allowed payload size ({MAX_RESPONSE_BYTES} bytes).",
    )


def exited(request_id: str, return_code: int) -> Outcome:
    """`return_code` as of subprocess: negative for a signal."""
    if return_code == 0:
        how = "Runtime exited without providing a reason"
    elif return_code > 0:
        how = f"Runtime exited with error: exit status {return_code}"
    else:
        name = signal.strsignal(-return_code) or f"signal {-return_code}"
        how = f"Runtime exited with error: signal: {name.lower()}"
    return failure("Runtime.ExitError", f"RequestId: {request_id} Error: {how}")

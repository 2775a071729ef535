"""A client of the Lambda Runtime API in pure Python, for systems awslambdaric has no wheel for. Standard library only.

Asks for the next invocation, calls the handler, posts what it returned or raised. Error types and texts are those of
awslambdaric. Source: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import http.client
import importlib
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

API = "/2018-06-01/runtime"


class Fault(Exception):
    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


@dataclass(frozen=True)
class Context:
    """What a handler gets beside the event."""

    aws_request_id: str
    invoked_function_arn: str
    client_context: Any
    deadline_ms: int
    function_name: str = field(default_factory=lambda: os.environ["AWS_LAMBDA_FUNCTION_NAME"])
    function_version: str = field(default_factory=lambda: os.environ["AWS_LAMBDA_FUNCTION_VERSION"])
    memory_limit_in_mb: str = field(default_factory=lambda: os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"])
    log_group_name: str = field(default_factory=lambda: os.environ["AWS_LAMBDA_LOG_GROUP_NAME"])
    log_stream_name: str = field(default_factory=lambda: os.environ["AWS_LAMBDA_LOG_STREAM_NAME"])

    def get_remaining_time_in_millis(self) -> int:
        return max(0, self.deadline_ms - int(time.time() * 1000))


Handler = Callable[[Any, Context], Any]


def run(handler: str) -> None:
    """Serves until the service ends the process; exits with 1 if the function cannot start or its answer is refused."""
    connection = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    logging.basicConfig(stream=sys.stdout, format="[%(levelname)s]\t%(message)s")
    try:
        function = _load(handler)
    except Exception as error:
        _post(connection, "/init/error", _error(error, ""))
        sys.exit(1)
    while True:
        _serve_one(connection, function)


def _load(handler: str) -> Handler:
    module_name, dot, name = handler.rpartition(".")
    if not dot:
        raise Fault("Runtime.MalformedHandlerName", f"Bad handler '{handler}': it has no dot")
    try:
        module = importlib.import_module(module_name.replace("/", "."))
    except ImportError as error:
        raise Fault("Runtime.ImportModuleError", f"Unable to import module '{module_name}': {error}") from error
    except SyntaxError as error:
        raise Fault("Runtime.UserCodeSyntaxError", f"Syntax error in module '{module_name}': {error}") from error
    if not hasattr(module, name):
        raise Fault("Runtime.HandlerNotFound", f"Handler '{name}' missing on module '{module_name}'")
    function: Handler = getattr(module, name)
    return function


def _serve_one(connection: http.client.HTTPConnection, function: Handler) -> None:
    connection.request("GET", f"{API}/invocation/next")
    response = connection.getresponse()
    event, headers = response.read(), response.headers
    request_id = headers["Lambda-Runtime-Aws-Request-Id"]
    _set_trace_id(headers["Lambda-Runtime-Trace-Id"])
    try:
        answer, place = _call(function, event, headers), "response"
    except Exception as error:
        answer, place = _error(error, request_id), "error"
    sys.stdout.flush()
    sys.stderr.flush()
    _post(connection, f"/invocation/{request_id}/{place}", answer)


def _set_trace_id(trace_id: str | None) -> None:
    """AWS's own emulator sends none."""
    os.environ.pop("_X_AMZN_TRACE_ID", None)
    if trace_id is not None:
        os.environ["_X_AMZN_TRACE_ID"] = trace_id


def _call(function: Handler, event: bytes, headers: http.client.HTTPMessage) -> bytes:
    context = Context(
        aws_request_id=headers["Lambda-Runtime-Aws-Request-Id"],
        invoked_function_arn=headers["Lambda-Runtime-Invoked-Function-Arn"],
        client_context=json.loads(headers["Lambda-Runtime-Client-Context"] or "null"),
        deadline_ms=int(headers["Lambda-Runtime-Deadline-Ms"]),
    )
    result = function(json.loads(event), context)
    if isinstance(result, bytes):
        return result
    try:
        return json.dumps(result).encode()
    except (TypeError, ValueError) as error:
        raise Fault("Runtime.MarshalError", f"Unable to marshal response: {error}") from error


def _error(error: Exception, request_id: str) -> bytes:
    """The first frames are this file's own."""
    is_fault = isinstance(error, Fault)
    frames = [] if is_fault else traceback.extract_tb(error.__traceback__)
    told = {
        "errorMessage": str(error),
        "errorType": error.error_type if isinstance(error, Fault) else type(error).__name__,
        "requestId": request_id,
        "stackTrace": traceback.format_list([frame for frame in frames if frame.filename != __file__]),
    }
    sys.stdout.write(f"[ERROR] {told['errorType']}: {told['errorMessage']}\n{''.join(told['stackTrace'])}")
    return json.dumps(told).encode()


def _post(connection: http.client.HTTPConnection, path: str, body: bytes) -> None:
    connection.request("POST", API + path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    response.read()
    if response.status != http.HTTPStatus.ACCEPTED:
        sys.exit(1)

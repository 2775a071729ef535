"""The part of AWS Lambda's REST API that boto3, aiobotocore and the AWS CLI need: Invoke, and reading a function back.

Source: https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html. A function's own failure is a 200 with
X-Amz-Function-Error; other statuses say that it did not run.
"""

import base64
import json
import uuid

import msgspec
from aiohttp import web

from local_cloud.lambda_service.core import LambdaCore, Throttled
from local_cloud.lambda_service.function_pool import FunctionPool, NotStarted, Result
from local_cloud.lambda_service.log_tail import TAIL_BYTES
from local_cloud.lambda_service.outcomes import Invocation
from local_cloud.lambda_service.settings import FunctionConfig
from local_cloud.lambda_service.worker_environment import function_arn

MAX_REQUEST_BYTES = 6 * 1024 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024
"""What is read before it is refused, so that the refusal can be read."""
FUNCTIONS = "/2015-03-31/functions/{function}"


class InvokeApi:
    def __init__(self, core: LambdaCore) -> None:
        self._core = core

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post(f"{FUNCTIONS}/invocations", self._invoke),
            web.get(FUNCTIONS, self._get_function),
            web.get(f"{FUNCTIONS}/configuration", self._get_configuration),
        ]

    async def _invoke(self, request: web.Request) -> web.Response:
        try:
            return await self._admit(request, self._find(request))
        except Throttled:
            return _throttled()
        except NotStarted as error:
            return _refusal(500, "ServiceException", str(error))
        except Refused as refused:
            return refused.answer

    async def _admit(self, request: web.Request, pool: FunctionPool) -> web.Response:
        kind = request.headers.get("X-Amz-Invocation-Type", "RequestResponse")
        if kind not in ("RequestResponse", "Event", "DryRun"):
            raise Refused(400, "InvalidParameterValueException", f"{kind!r} is not RequestResponse, Event or DryRun.")
        payload = await self._payload(request, self._core.config.event_bytes if kind == "Event" else MAX_REQUEST_BYTES)
        if kind == "DryRun":
            return web.Response(status=204)
        invocation = _invocation(request, pool.function, payload)
        headers = {"x-amzn-RequestId": invocation.request_id}
        if kind == "Event":
            self._core.enqueue(pool, invocation)
            return web.Response(status=202, headers=headers)
        result = await self._core.invoke(pool, invocation)
        with_log = request.headers.get("X-Amz-Log-Type") == "Tail"
        return web.Response(body=result.outcome.body, headers=headers | _result_headers(result, with_log=with_log))

    async def _payload(self, request: web.Request, limit: int) -> bytes:
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge as error:
            raise _too_large(limit) from error
        if len(body) > limit:
            raise _too_large(limit)
        try:
            msgspec.json.decode(body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            told = f"Could not parse request body into json: {error}"
            raise Refused(400, "InvalidRequestContentException", told) from error
        return body or b"{}"

    async def _get_function(self, request: web.Request) -> web.Response:
        try:
            return web.json_response({"Configuration": _configuration(self._find(request).function)})
        except Refused as refused:
            return refused.answer

    async def _get_configuration(self, request: web.Request) -> web.Response:
        try:
            return web.json_response(_configuration(self._find(request).function))
        except Refused as refused:
            return refused.answer

    def _find(self, request: web.Request) -> FunctionPool:
        """By name, partial or full ARN, with or without a qualifier; there is one version, $LATEST."""
        parts = request.match_info["function"].split(":")
        if len(parts) > 2 and "function" in parts:
            parts = parts[parts.index("function") + 1 :]
        name, qualifier = parts[0], ":".join(parts[1:]) or request.query.get("Qualifier", "$LATEST")
        pool = self._core.pools.get(name)
        if pool is None or qualifier != "$LATEST":
            named = function_arn(name) + ("" if qualifier == "$LATEST" else f":{qualifier}")
            raise Refused(404, "ResourceNotFoundException", f"Function not found: {named}")
        return pool


class Refused(Exception):
    """The function does not run; `answer` says why."""

    def __init__(self, status: int, error_type: str, message: str) -> None:
        super().__init__(message)
        self.answer = _refusal(status, error_type, message)


def _refusal(status: int, error_type: str, message: str) -> web.Response:
    """AWS writes message with a small letter in some errors and a capital in others; clients read either."""
    body = {"Type": "User", "Message": message, "message": message}
    return web.json_response(body, status=status, headers={"x-amzn-ErrorType": error_type})


def _throttled() -> web.Response:
    body = {"Type": "User", "Reason": "ConcurrentInvocationLimitExceeded", "message": "Rate Exceeded."}
    return web.json_response(body, status=429, headers={"x-amzn-ErrorType": "TooManyRequestsException"})


def _too_large(limit: int) -> Refused:
    told = f"Request must be smaller than {limit} bytes for the InvokeFunction operation"
    return Refused(413, "RequestTooLargeException", told)


def _invocation(request: web.Request, function: FunctionConfig, payload: bytes) -> Invocation:
    return Invocation(
        request_id=str(uuid.uuid4()),
        payload=payload,
        function_arn=function_arn(function.name),
        client_context=_client_context(request.headers.get("X-Amz-Client-Context")),
        trace_id=f"Root=1-00000000-{uuid.uuid4().hex[:24]};Sampled=0",
    )


def _client_context(header: str | None) -> str | None:
    """In one line, for it travels on in a header."""
    if header is None:
        return None
    try:
        return json.dumps(json.loads(base64.b64decode(header, validate=True)))
    except ValueError as error:
        told = f"Client context must be a valid Base64-encoded JSON object: {error}"
        raise Refused(400, "InvalidRequestContentException", told) from error


def _result_headers(result: Result, *, with_log: bool) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "X-Amz-Executed-Version": "$LATEST"}
    if result.outcome.error_type is not None:
        headers["X-Amz-Function-Error"] = "Unhandled"
    if with_log:
        headers["X-Amz-Log-Result"] = base64.b64encode(result.log[-TAIL_BYTES:]).decode()
    return headers


def _configuration(function: FunctionConfig) -> dict[str, object]:
    """What a waiter and a careful launcher look at."""
    return {
        "FunctionName": function.name,
        "FunctionArn": function_arn(function.name),
        "Handler": function.handler,
        "MemorySize": function.memory_mb,
        "Timeout": max(1, round(function.timeout_seconds)),
        "Version": "$LATEST",
        "PackageType": "Zip",
        "State": "Active",
        "LastUpdateStatus": "Successful",
        "Environment": {"Variables": function.environment},
    }

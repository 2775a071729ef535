"""The Lambda Runtime API of one worker, on its own port: next, response, error, init/error.

Source: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html. A port each, because the address a worker is
given (AWS_LAMBDA_RUNTIME_API) has no room for a name.
"""

import time
from typing import Protocol

from aiohttp import web

from local_cloud.lambda_service import outcomes
from local_cloud.lambda_service.outcomes import MAX_RESPONSE_BYTES, Invocation, Outcome
from local_cloud.lambda_service.settings import FunctionConfig

PREFIX = "/2018-06-01/runtime"
MAX_BODY_BYTES = 1 << 30
"""An answer that is too large must be read before it can be refused."""


class Served(Protocol):
    """The worker, as this side sees it."""

    function: FunctionConfig

    async def next_invocation(self) -> Invocation: ...
    def answer(self, request_id: str, outcome: Outcome) -> bool: ...
    def init_failed(self, body: bytes) -> None: ...


class RuntimeApi:
    def __init__(self, worker: Served) -> None:
        self._worker = worker
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_get(f"{PREFIX}/invocation/next", self._next)
        app.router.add_post(f"{PREFIX}/invocation/{{request_id}}/response", self._response)
        app.router.add_post(f"{PREFIX}/invocation/{{request_id}}/error", self._error)
        app.router.add_post(f"{PREFIX}/init/error", self._init_error)
        # A request whose worker has died is dropped: its `next` would wait for ever.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0)

    async def start(self) -> str:
        """HOST:PORT"""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        return f"{host}:{port}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _next(self, _: web.Request) -> web.Response:
        invocation = await self._worker.next_invocation()
        deadline_ms = int((time.time() + self._worker.function.timeout_seconds) * 1000)
        headers = {
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": invocation.function_arn,
            "Lambda-Runtime-Trace-Id": invocation.trace_id,
        }
        if invocation.client_context is not None:
            headers["Lambda-Runtime-Client-Context"] = invocation.client_context
        return web.Response(body=invocation.payload, content_type="application/json", headers=headers)

    async def _response(self, request: web.Request) -> web.Response:
        body = await request.read()
        if len(body) > MAX_RESPONSE_BYTES:
            self._worker.answer(request.match_info["request_id"], outcomes.response_too_large())
            return _told(413, "RequestEntityTooLarge", "Exceeded maximum allowed payload size.")
        return self._take(request, Outcome(body))

    async def _error(self, request: web.Request) -> web.Response:
        return self._take(request, outcomes.reported(await request.read()))

    async def _init_error(self, request: web.Request) -> web.Response:
        self._worker.init_failed(await request.read())
        return web.json_response({"status": "OK"}, status=202)

    def _take(self, request: web.Request, outcome: Outcome) -> web.Response:
        if self._worker.answer(request.match_info["request_id"], outcome):
            return web.json_response({"status": "OK"}, status=202)
        return _told(400, "InvalidRequestID", "Nobody waits for this request's answer.")


def _told(status: int, error_type: str, message: str) -> web.Response:
    return web.json_response({"errorType": error_type, "errorMessage": message}, status=status)

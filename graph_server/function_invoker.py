"""Invokes the tensor function: one synchronous invocation is one lease, with a key or token of its own.

The secret half of what the lease shows goes only into the ticket of a RequestResponse invocation. Parameter servers
admit the lease on this graph server's word before, and forget it after.
"""

import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import aiobotocore.session
import aiohttp
import msgspec
from aiobotocore.config import AioConfig
from botocore.exceptions import BotoCoreError, ClientError

from common.role_start import FunctionPlace
from common.wire.admission import Admission
from common.wire.clients import ParameterClient
from common.wire.ticket import Ticket
from graph_server.backends.base import Invocation
from graph_server.billed import Billed

LOG = logging.getLogger(__name__)
LOGGED_BYTES = 2000
READ_SECONDS_MORE = 30
"""botocore's own limit would end, and start again, an invocation that lives as long as its lease."""
THROTTLED = frozenset({"TooManyRequestsException", "ThrottlingException", "EC2ThrottledException"})
LOCAL_KEY = "local"
"""The local Lambda service asks for a signature and checks none."""


class FunctionInvoker:
    """`ticket`: lease number -> ticket with a fresh credential; `admission`: of this graph server's listener."""

    def __init__(
        self,
        place: FunctionPlace,
        ticket: Callable[[int], Ticket],
        *,
        lease_seconds: float,
        admission: Admission,
        parameters: ParameterClient,
    ) -> None:
        self._place, self._ticket, self._seconds = place, ticket, lease_seconds
        self._admission, self._parameters = admission, parameters
        self._exit = AsyncExitStack()
        self._client: Any = None
        self.billed = Billed(place.memory_mb)

    async def __aenter__(self) -> Self:
        place, local = self._place, self._place.endpoint_url is not None
        config = AioConfig(
            read_timeout=self._seconds + READ_SECONDS_MORE,
            connect_timeout=10,
            retries={"total_max_attempts": 1},  # we retry, knowingly: its own would start leases twice
            max_pool_connections=max(10, place.concurrency),
            tcp_keepalive=True,
        )
        client = aiobotocore.session.get_session().create_client(
            "lambda",
            region_name=place.region,
            endpoint_url=place.endpoint_url,
            config=config,
            aws_access_key_id=LOCAL_KEY if local else None,
            aws_secret_access_key=LOCAL_KEY if local else None,
        )
        self._client = await self._exit.enter_async_context(client)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._exit.aclose()

    async def invoke(self, lease: int) -> Invocation:
        ticket = self._ticket(lease)
        proof = ticket.credentials.proof
        self._admission.admit(ticket.name, proof)
        await self._parameters.admit(ticket.name, proof)
        self.billed.open += 1
        try:
            return await self._request(ticket)
        finally:
            self.billed.open -= 1
            self._admission.expel(ticket.name)
            await self._parameters.admit(ticket.name, None)

    async def _request(self, ticket: Ticket) -> Invocation:
        began = time.monotonic()
        try:
            response = await self._client.invoke(
                FunctionName=self._place.function_name,
                InvocationType="RequestResponse",
                LogType="Tail",  # its last line says what is billed
                Payload=msgspec.json.encode(ticket),
            )
            async with response["Payload"] as body:
                answer = await body.read()
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            return Invocation.THROTTLED if code in THROTTLED else _lost(ticket, str(error))
        except (BotoCoreError, aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            self.billed.unknown(time.monotonic() - began)
            return _lost(ticket, f"{type(error).__name__}: {error}")
        self.billed.told(response.get("LogResult", ""), time.monotonic() - began)
        if "FunctionError" in response:
            return _lost(ticket, answer[:LOGGED_BYTES].decode(errors="replace"))
        return Invocation.SERVED


def _lost(ticket: Ticket, why: str) -> Invocation:
    LOG.warning("lease %s of %s is lost: %s", ticket.lease, ticket.graph_server, why)
    return Invocation.LOST

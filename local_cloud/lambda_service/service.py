"""The local Lambda service: functions behind AWS's Invoke API, on this machine.

`serving(config)` runs it in the current event loop; `python -m local_cloud.lambda_service` as a process of its own.
When it ends, and also when it is killed, no worker is left.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from local_cloud.lambda_service.admin_api import AdminApi
from local_cloud.lambda_service.core import LambdaCore
from local_cloud.lambda_service.invoke_api import MAX_BODY_BYTES, InvokeApi
from local_cloud.lambda_service.meter import Bill
from local_cloud.lambda_service.settings import Faults, ServiceConfig, checked


@dataclass(frozen=True)
class LambdaService:
    """A running service. `url` is what a client takes as its endpoint_url."""

    url: str
    port: int
    core: LambdaCore

    @property
    def faults(self) -> Faults:
        return self.core.faults

    def set_faults(self, faults: Faults) -> None:
        self.core.set_faults(faults)

    def bill(self, *, with_records: bool = True) -> Bill:
        return self.core.meter.bill(with_records=with_records)


@asynccontextmanager
async def serving(config: ServiceConfig) -> AsyncIterator[LambdaService]:
    """On a free port of 127.0.0.1. SpecError if the configuration is wrong."""
    config = checked(config)
    async with asyncio.TaskGroup() as group:
        core = LambdaCore(config, group)
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.add_routes([*InvokeApi(core).routes(), *AdminApi(core).routes()])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        try:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
            host, port = runner.addresses[0][:2]
            yield LambdaService(f"http://{host}:{port}", port, core)
        finally:
            core.stop()
            await runner.cleanup()

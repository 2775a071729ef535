"""What is not AWS's: the meter, the faults, the workers. Paths begin with /_, which no function's path does."""

import msgspec
from aiohttp import web

from local_cloud.lambda_service.core import LambdaCore
from local_cloud.lambda_service.settings import Faults


class WorkerView(msgspec.Struct, frozen=True):
    function: str
    pid: int
    idle: bool


class AdminApi:
    """
    GET /_meter           what AWS would bill; ?records=0 without the single invocations
    GET, PUT /_faults     a Faults as JSON; PUT replaces it and begins its rows of decisions anew
    GET /_workers         the processes
    """

    def __init__(self, core: LambdaCore) -> None:
        self._core = core

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/_meter", self._meter),
            web.get("/_faults", self._faults),
            web.put("/_faults", self._set_faults),
            web.get("/_workers", self._workers),
        ]

    async def _meter(self, request: web.Request) -> web.Response:
        return _json(self._core.meter.bill(with_records=request.query.get("records") != "0"))

    async def _faults(self, _: web.Request) -> web.Response:
        return _json(self._core.faults)

    async def _set_faults(self, request: web.Request) -> web.Response:
        try:
            faults = msgspec.json.decode(await request.read(), type=Faults)
        except msgspec.MsgspecError as error:
            return web.Response(status=400, text=str(error))
        self._core.set_faults(faults)
        return _json(faults)

    async def _workers(self, _: web.Request) -> web.Response:
        workers = [
            WorkerView(name, worker.pid, worker.is_idle)
            for name, pool in self._core.pools.items()
            for worker in pool.workers
        ]
        return _json(sorted(workers, key=lambda worker: worker.pid))


def _json(told: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(told), content_type="application/json")

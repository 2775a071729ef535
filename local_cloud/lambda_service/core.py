"""Admission, the queue of events, metering: the service without its HTTP face.

An invocation in flight takes a place, whoever asked for it and whatever its worker does; a call that finds none free is
throttled. Events wait in a bounded queue for a free place. An event that fails is not tried again (AWS tries twice
more, minutes later).
"""

import asyncio
from collections import deque

from local_cloud.lambda_service.fault_dice import FaultDice
from local_cloud.lambda_service.function_pool import FunctionPool, NotStarted, Result
from local_cloud.lambda_service.meter import Meter
from local_cloud.lambda_service.outcomes import Invocation
from local_cloud.lambda_service.process_memory import SECONDS_BETWEEN
from local_cloud.lambda_service.settings import Faults, ServiceConfig


class Throttled(Exception):
    """No place is free, or the dice said so."""


class LambdaCore:
    """Runs inside `group`; `stop` ends everything it started there."""

    def __init__(self, config: ServiceConfig, group: asyncio.TaskGroup) -> None:
        self.config, self._group = config, group
        self.pools = {function.name: FunctionPool(function, config, group) for function in config.functions}
        self.meter = Meter(config.records)
        self._dice = FaultDice(config.faults)
        self._free_places = config.concurrency
        self._events: deque[tuple[FunctionPool, Invocation]] = deque()
        self._look_at_events = asyncio.Event()
        self._keepers = [group.create_task(self._serve_events()), group.create_task(self._watch_memory())]

    @property
    def faults(self) -> Faults:
        return self._dice.faults

    def set_faults(self, faults: Faults) -> None:
        self._dice = FaultDice(faults)

    async def invoke(self, pool: FunctionPool, invocation: Invocation) -> Result:
        """Waits for the result. Raises Throttled, NotStarted."""
        if self._dice.throttles() or self._free_places == 0:
            self._throttle(pool)
        self._free_places -= 1
        return await self._run(pool, invocation)

    def enqueue(self, pool: FunctionPool, invocation: Invocation) -> None:
        """An event: it runs when there is a place. Raises Throttled."""
        if self._dice.throttles() or len(self._events) == self.config.event_queue:
            self._throttle(pool)
        self._events.append((pool, invocation))
        self._look_at_events.set()

    def stop(self) -> None:
        """What runs ends with an error; events that wait are dropped."""
        for keeper in self._keepers:
            keeper.cancel()
        for pool in self.pools.values():
            pool.stop()

    def _throttle(self, pool: FunctionPool) -> None:
        self.meter.throttle(pool.function.name)
        raise Throttled

    async def _run(self, pool: FunctionPool, invocation: Invocation) -> Result:
        """Its place is taken already."""
        try:
            result = await pool.invoke(invocation, self._dice)
        finally:
            self._free_places += 1
            self._look_at_events.set()
        self.meter.invocation(result.record)
        return result

    async def _serve_events(self) -> None:
        while True:
            while self._events and self._free_places > 0:
                self._free_places -= 1
                self._group.create_task(self._run_event(*self._events.popleft()))
            self._look_at_events.clear()
            await self._look_at_events.wait()

    async def _run_event(self, pool: FunctionPool, invocation: Invocation) -> None:
        try:
            await self._run(pool, invocation)
        except NotStarted:
            return

    async def _watch_memory(self) -> None:
        while True:
            await asyncio.sleep(SECONDS_BETWEEN)
            for pool in self.pools.values():
                pool.check_memory()

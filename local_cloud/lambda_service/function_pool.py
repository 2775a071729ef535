"""The workers of one function: the idle ones, starting more, ending those nobody needs.

invoke   takes the worker that became idle last, else starts one (a cold start)
reap     a worker that was idle for `idle_seconds` is ended
"""

import asyncio
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from common.pricing import billed_ms
from local_cloud.lambda_service import outcomes
from local_cloud.lambda_service.fault_dice import FaultDice
from local_cloud.lambda_service.meter import InvocationRecord, report_line
from local_cloud.lambda_service.outcomes import Invocation, Outcome
from local_cloud.lambda_service.settings import FunctionConfig, ServiceConfig
from local_cloud.lambda_service.worker import Worker
from local_cloud.lambda_service.worker_environment import choose_runtime

MIB = 1024 * 1024


class NotStarted(Exception):
    """No worker could be started: the service is about to end, or the system refuses another process."""


@dataclass(frozen=True)
class Result:
    outcome: Outcome
    record: InvocationRecord
    log: bytes
    """Its last part."""


class FunctionPool:
    """`group` runs what watches over the workers."""

    def __init__(self, function: FunctionConfig, config: ServiceConfig, group: asyncio.TaskGroup) -> None:
        self.function, self._config, self._group = function, config, group
        self.workers: set[Worker] = set()
        self._idle: dict[Worker, asyncio.TimerHandle] = {}
        self._starting: set[Worker] = set()
        self._stopping = False
        self._runtime = choose_runtime(config.runtime)

    async def invoke(self, invocation: Invocation, dice: FaultDice) -> Result:
        """Always ends with a result, unless it could not begin: NotStarted."""
        crash_after = dice.crash_after()
        while True:
            worker, cold = self._take_idle(), False
            if worker is None:
                worker, cold = await self._start(invocation.request_id, dice.faults.cold_start_seconds), True
            if worker.exited.is_set():
                return self._result(worker, invocation, worker.start_failure(invocation.request_id), cold=True)
            if not cold:
                worker.log.clear()
            worker.log.add(f"START RequestId: {invocation.request_id} Version: $LATEST\n")
            work = await worker.run(invocation, crash_after=crash_after)
            outcome = work.outcome.result()
            if outcome is not None:
                return self._result(worker, invocation, outcome, cold=cold, duration_ms=work.duration_ms)

    def check_memory(self) -> None:
        """Of every worker that is not idle."""
        for worker in tuple(self.workers):
            if not worker.is_idle:
                worker.check_memory()

    def stop(self) -> None:
        """Ends all workers at once; what they were at ends with an error."""
        self._stopping = True
        for worker in tuple(self.workers):
            worker.kill()

    def _take_idle(self) -> Worker | None:
        while self._idle:
            worker, timer = self._idle.popitem()
            timer.cancel()
            if not worker.exited.is_set():
                return worker
        return None

    async def _start(self, request_id: str, delay: float) -> Worker:
        """It is ready, or has exited."""
        if delay > 0:
            await asyncio.sleep(delay)
        if self._stopping:
            raise NotStarted("the service is stopping")
        worker = Worker(self.function, freeze=self._config.freeze_idle, told=self._hear)
        self._starting.add(worker)
        try:
            await self._wait_until_ready(worker, request_id)
        finally:
            self._starting.discard(worker)
        return worker

    async def _wait_until_ready(self, worker: Worker, request_id: str) -> None:
        log_stream = f"{datetime.now(UTC):%Y/%m/%d}/[$LATEST]{uuid.uuid4().hex}"
        try:
            await worker.start(runtime=self._runtime, log_stream=log_stream)
        except OSError as error:
            raise NotStarted(str(error)) from error
        self.workers.add(worker)
        self._group.create_task(worker.live())
        if self._stopping:
            worker.kill()
        try:
            async with asyncio.timeout(self._config.init_seconds):
                await worker.ready.wait()
        except TimeoutError:
            worker.give_up(outcomes.timed_out(request_id, self._config.init_seconds))
            await worker.exited.wait()

    def _hear(self, worker: Worker) -> None:
        """It is idle, or has exited."""
        if worker.exited.is_set():
            self.workers.discard(worker)
            if worker in self._idle:
                self._idle.pop(worker).cancel()
        elif worker not in self._starting:
            loop = asyncio.get_running_loop()
            self._idle[worker] = loop.call_later(self._config.idle_seconds, self._reap, worker)

    def _reap(self, worker: Worker) -> None:
        with suppress(KeyError):
            del self._idle[worker]
            worker.kill()

    def _result(
        self, worker: Worker, invocation: Invocation, outcome: Outcome, *, cold: bool, duration_ms: float = 0.0
    ) -> Result:
        init_ms = worker.init_ms if cold else 0.0
        record = InvocationRecord(
            function=self.function.name,
            request_id=invocation.request_id,
            cold_start=cold,
            init_ms=init_ms,
            duration_ms=duration_ms,
            billed_ms=billed_ms(duration_ms, init_ms=init_ms),
            memory_mb=self.function.memory_mb,
            max_memory_mb=None if worker.peak_bytes is None else worker.peak_bytes // MIB,
            error_type=outcome.error_type,
        )
        end = f"END RequestId: {invocation.request_id}\n{report_line(record)}".encode()
        return Result(outcome, record, worker.log.tail() + end)

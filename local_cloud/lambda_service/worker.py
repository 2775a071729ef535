"""One worker: a process that runs one function, one invocation at a time, and the Runtime API it speaks with.

    starting --next--> idle --run--> working --next--> idle ...        and from anywhere: exited

An invocation always ends: with what the function answers, at its timeout, with the death of the process, or for want
of memory; whatever comes first counts. A worker that answered is idle only when it asks for the next invocation.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from local_cloud.lambda_service import outcomes
from local_cloud.lambda_service.log_tail import LogTail
from local_cloud.lambda_service.outcomes import Invocation, Outcome
from local_cloud.lambda_service.process_memory import peak_bytes
from local_cloud.lambda_service.runtime_api import RuntimeApi
from local_cloud.lambda_service.settings import FunctionConfig
from local_cloud.lambda_service.worker_environment import worker_command, worker_environment

HOLD_SECONDS = 0.5
"""An answer waits for its worker to ask for more, but no longer than this: else the caller's next call could find it
still busy, and start another worker, or be throttled, for nothing. It takes about a millisecond."""


@dataclass
class Work:
    """One invocation in this worker. `outcome` is None if the worker died before it was handed over."""

    invocation: Invocation
    outcome: "asyncio.Future[Outcome | None]"
    started: float
    handed_over: bool = False
    duration_ms: float = 0.0


class Worker:
    """`told` is called when it becomes idle and when it has exited."""

    def __init__(self, function: FunctionConfig, *, freeze: bool, told: Callable[["Worker"], None]) -> None:
        self.function, self._freeze, self._told = function, freeze, told
        self._inbox: asyncio.Queue[Work] = asyncio.Queue(maxsize=1)
        self._work: Work | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._init_error: Outcome | None = None
        self._began = time.monotonic()
        self.ready = asyncio.Event()
        """Asked for its first invocation, or will never."""
        self.settled = asyncio.Event()
        """Idle, or exited."""
        self.exited = asyncio.Event()
        self.init_ms = 0.0
        self.peak_bytes: int | None = None

    async def start(self, *, runtime: str, log_stream: str) -> None:
        """Returns when the process runs; `live` must be run from then on. OSError leaves nothing behind."""
        self._api = RuntimeApi(self)
        address = await self._api.start()
        self.log = LogTail()
        lifeline, self._lifeline = os.pipe()
        self._began = time.monotonic()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *worker_command(self.function, runtime=runtime, lifeline=lifeline),
                cwd=self.function.task_root,
                env=worker_environment(self.function, runtime_api=address, log_stream=log_stream),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self.log.write_end,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=[lifeline],
                process_group=0,
            )
        except OSError:
            self._close()
            await self._api.stop()
            raise
        finally:
            os.close(lifeline)
            os.close(self.log.write_end)

    async def live(self) -> None:
        """Until the process has exited and nothing of it is left."""
        return_code = await self._process.wait()
        self.exited.set()
        if self._work is not None:
            gone = outcomes.exited(self._work.invocation.request_id, return_code)
            self._end(gone if self._work.handed_over else None)
        self._stop_timers()
        self._become_ready()
        self._close()
        self.settled.set()
        self._told(self)
        await self._api.stop()

    def _close(self) -> None:
        self.log.close()
        os.close(self._lifeline)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_idle(self) -> bool:
        return self.settled.is_set() and not self.exited.is_set()

    async def run(self, invocation: Invocation, *, crash_after: float | None) -> Work:
        """Only of an idle worker. `crash_after`: seconds until it is killed, unless it is done by then."""
        loop = asyncio.get_running_loop()
        work = Work(invocation, loop.create_future(), time.monotonic())
        self._work = work
        self.settled.clear()
        self._timers = [loop.call_later(self.function.timeout_seconds, self._time_out)]
        if crash_after is not None:
            self._timers.append(loop.call_later(crash_after, self._crash))
        self._inbox.put_nowait(work)
        self._signal(signal.SIGCONT)
        await work.outcome
        with suppress(TimeoutError):
            async with asyncio.timeout(HOLD_SECONDS):
                await self.settled.wait()
        return work

    def kill(self) -> None:
        """With all it started."""
        self._signal(signal.SIGKILL)

    def give_up(self, error: Outcome) -> None:
        """Its start took too long."""
        self._init_error = error
        self.kill()

    def start_failure(self, request_id: str) -> Outcome:
        """Why it has exited before it was ready."""
        if self._init_error is not None:
            return self._init_error
        if self.is_over_memory():
            return outcomes.out_of_memory(request_id)
        return outcomes.exited(request_id, self._process.returncode or 0)

    def check_memory(self) -> bool:
        """Kills it if it ever took more than the function's memory, and says so."""
        self.peak_bytes = peak_bytes(self.pid) or self.peak_bytes
        if not self.is_over_memory():
            return False
        if self._work is not None:
            self._end(outcomes.out_of_memory(self._work.invocation.request_id))
        self.kill()
        return True

    def is_over_memory(self) -> bool:
        return self.peak_bytes is not None and self.peak_bytes > self.function.memory_mb * 1024 * 1024

    # what the process says through the Runtime API

    async def next_invocation(self) -> Invocation:
        self._stop_timers()
        self._work = None
        self._become_ready()
        self.settled.set()
        if self._freeze:
            self._signal(signal.SIGSTOP)
        self._told(self)
        work = await self._inbox.get()
        work.handed_over = True
        return work.invocation

    def answer(self, request_id: str, outcome: Outcome) -> bool:
        """False if nobody waits for it."""
        work = self._work
        if work is None or work.invocation.request_id != request_id or work.outcome.done():
            return False
        if not self.check_memory():
            self._end(outcome)
        return True

    def init_failed(self, body: bytes) -> None:
        self._init_error = outcomes.reported(body)

    def _become_ready(self) -> None:
        if not self.ready.is_set():
            self.init_ms = (time.monotonic() - self._began) * 1000
            self.ready.set()

    def _end(self, outcome: Outcome | None) -> None:
        if self._work is not None and not self._work.outcome.done():
            self._work.duration_ms = (time.monotonic() - self._work.started) * 1000
            self._work.outcome.set_result(outcome)

    def _time_out(self) -> None:
        """Also of a worker that answered and never asked again."""
        if self._work is not None:
            self._end(outcomes.timed_out(self._work.invocation.request_id, self.function.timeout_seconds))
        self.kill()

    def _crash(self) -> None:
        if self._work is not None and not self._work.outcome.done():
            self.kill()

    def _stop_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _signal(self, number: int) -> None:
        """The process and what it started: they are a group. A group that is gone needs no signal."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

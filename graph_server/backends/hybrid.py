"""Tensor tasks on the graph server's own cores while they are idle, on AWS Lambda while they are busy.

A task that finds an idle core takes it; else it goes to the leases. One that no lease has yet is taken back as soon as
a core is idle. Leases are opened for what has waited for both, and end when they have nothing to do.
"""

import asyncio
import contextlib
from dataclasses import replace

from common.saga.arrays import Array
from common.wire import messages
from common.wire.channel import Reply
from graph_server.backends import aws_lambda, local_cpu
from graph_server.backends.base import BackendOptions, TaskResult, TensorTask

LOOK_SECONDS = 0.1
"""A task whose lease was lost waits again, though nobody leaves a core."""


class Backend:
    name = "hybrid"

    def __init__(self, options: BackendOptions) -> None:
        self._here, self._away = local_cpu.Backend(options), aws_lambda.Backend(options)
        self._cores = options.cores
        self._tasks_here = 0

    @property
    def places(self) -> int:
        return self._away.places

    @property
    def counts(self) -> dict[str, int]:
        return {**self._away.counts, "tasks_here": self._tasks_here}

    @property
    def kernels(self) -> frozenset[str]:
        return self._away.kernels

    async def run(self, task: TensorTask) -> TaskResult:
        self._away.saw(task.pass_)
        if self._cores.has_idle:
            self._cores.enter()
        elif (result := await self._away.offer(task)) is not None:
            return result
        with contextlib.ExitStack() as core:
            core.callback(self._leave_core)

            def give(result: TaskResult) -> None:
                core.close()
                task.give(result)

            return await self._here.run(replace(task, give=give))

    def _leave_core(self) -> None:
        self._cores.leave()
        self._away.done_elsewhere()
        self._tasks_here += 1

    async def serve(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._away.serve())
            group.create_task(self._take_back())

    async def answer(self, message: messages.AnyMessage, buffers: list[Array]) -> Reply | None:
        return await self._away.answer(message, buffers)

    async def close(self) -> None:
        await self._away.close()
        await self._here.close()

    async def _take_back(self) -> None:
        """Whose task it was does it, on the core that is taken for it here."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._cores.left()
            while self._cores.has_idle and self._away.withdraw():
                self._cores.enter()

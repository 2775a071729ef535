"""Tensor tasks on the graph server's own cores: the same route as on Lambda, with `compute` in a thread.

What an interval's pass does not depend on, it does not wait for: all but a pass's last task give their outputs while
their gradients are on the way, and the next weights are asked for while the training clock hears of the pass's end.
"""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from common.errors import DorylusError, TaskCrashed
from common.passes import Pass, PassKind
from common.saga.arrays import Array, Weights
from common.saga.compute import Kept, TaskInputs, TaskOutputs, compute
from common.wire import messages
from common.wire.channel import Reply
from graph_server.backends.base import BackendOptions, TaskResult, TensorTask
from graph_server.graph.dropout_kernel import QuickMasks

AHEAD_SECONDS = 1.0
"""Where others take longer to make the next weights version, to ask for it early wins nothing."""


class Backend:
    name = "local_cpu"

    def __init__(self, options: BackendOptions) -> None:
        self._options = options
        self._pool = ThreadPoolExecutor(options.threads, thread_name_prefix="tensor")
        self._kept: dict[int, tuple[Pass, Kept]] = {}
        self._pushing: dict[int, set[asyncio.Event]] = {}
        """By interval: one for each task whose gradients are on the way, set when they have come."""

    @property
    def places(self) -> int:
        return self._options.threads

    async def run(self, task: TensorTask) -> TaskResult:
        parameters = self._options.parameters
        weights, fetched = await parameters.weights(task.pass_.weights_version, task.pass_.missing_updates)
        outputs, started, ended = await asyncio.get_running_loop().run_in_executor(
            self._pool, self._compute, task, weights
        )
        num_bytes = sum(gradient.nbytes for gradient in outputs.gradients.values())
        result = TaskResult(outputs, started, ended, fetched, num_bytes, place=self.name)
        if not task.ends_pass:
            # Not gradients first, as on Lambda: no task is lost here unless this whole process is, or the push fails,
            # which ends the job.
            task.give(result)
        await self._push(task, outputs.gradients)
        if task.ends_pass:
            await self._all_pushed(task.interval)
            task.give(result)
            await self._fetch_ahead(task.pass_)
        return result

    async def _push(self, task: TensorTask, gradients: Mapping[str, Array]) -> None:
        if not gradients:
            return
        pushed = asyncio.Event()
        pushing = self._pushing.setdefault(task.interval, set())
        pushing.add(pushed)
        await self._options.parameters.push(gradients, pass_=task.pass_, stage=str(task.step), interval=task.interval)
        pushed.set()
        pushing.discard(pushed)

    async def _all_pushed(self, interval: int) -> None:
        for pushed in tuple(self._pushing.get(interval, ())):
            await pushed.wait()

    async def _fetch_ahead(self, pass_: Pass) -> None:
        """What it does not get in time is fetched when a task asks for it."""
        if pass_.missing_updates:
            return
        with contextlib.suppress(DorylusError, TimeoutError):
            async with asyncio.timeout(AHEAD_SECONDS):
                await self._options.parameters.fetch_ahead(pass_.weights_version + 1)

    def _compute(self, task: TensorTask, weights: Weights) -> tuple[TaskOutputs, float, float]:
        started = time.monotonic()
        masks = QuickMasks(
            seed=self._options.seed,
            interval=task.interval,
            epoch=task.pass_.epoch,
            training=task.pass_.kind is PassKind.TRAIN,
        )
        try:
            inputs = TaskInputs(task.rows, weights, masks, self._options.loss, self._kept_of(task))
            outputs = compute(self._options.model, task.step, inputs)
        except DorylusError:
            raise
        except Exception as error:
            what = f"{task.step} of interval {task.interval} in {task.pass_} raised {type(error).__name__}"
            raise TaskCrashed(what, why=traceback.format_exc().rstrip()) from error
        return outputs, started, time.monotonic()

    def _kept_of(self, task: TensorTask) -> Kept | None:
        """Of the interval's own pass; what an earlier one has left is gone."""
        if task.pass_.kind is not PassKind.TRAIN:
            return None
        if task.interval not in self._kept or self._kept[task.interval][0] != task.pass_:
            self._kept[task.interval] = task.pass_, {}
        return self._kept[task.interval][1]

    @property
    def counts(self) -> dict[str, int]:
        return {}

    @property
    def kernels(self) -> frozenset[str]:
        return frozenset()

    async def serve(self) -> None:
        """Nothing: its threads wait by themselves."""

    async def answer(self, message: messages.AnyMessage, buffers: list[Array]) -> Reply | None:
        return None

    async def close(self) -> None:
        self._pool.shutdown(wait=True)

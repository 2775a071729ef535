"""Tensor tasks on the graph server's own cores: the same route as on Lambda, with `compute` in a thread."""

import asyncio
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from common.errors import DorylusError, TaskCrashed
from common.passes import Pass, PassKind
from common.saga.arrays import Array, Weights
from common.saga.compute import Kept, TaskInputs, TaskOutputs, compute
from common.saga.masks import Masks
from common.wire import messages
from common.wire.channel import Reply
from graph_server.backends.base import BackendOptions, TaskResult, TensorTask


class Backend:
    name = "local_cpu"

    def __init__(self, options: BackendOptions) -> None:
        self._options = options
        self._pool = ThreadPoolExecutor(options.threads, thread_name_prefix="tensor")
        self._kept: dict[int, tuple[Pass, Kept]] = {}

    @property
    def places(self) -> int:
        return self._options.threads

    async def run(self, task: TensorTask) -> TaskResult:
        parameters = self._options.parameters
        weights, fetched = await parameters.weights(task.pass_.weights_version, task.pass_.missing_updates)
        outputs, started, ended = await asyncio.get_running_loop().run_in_executor(
            self._pool, self._compute, task, weights
        )
        # Gradients first: were the outputs taken before, a failure in between would lose the gradients for ever.
        sent = 0
        if outputs.gradients:
            sent = await parameters.push(
                outputs.gradients, pass_=task.pass_, stage=str(task.step), interval=task.interval
            )
        return TaskResult(outputs, started, ended, fetched, sent, place=self.name)

    def _compute(self, task: TensorTask, weights: Weights) -> tuple[TaskOutputs, float, float]:
        started = time.monotonic()
        masks = Masks(
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

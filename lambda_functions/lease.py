"""Serves one lease: `slots` loops that each ask for a task, compute, push gradients, push outputs.

While one slot computes, the next one's inputs are on the way: transfer and arithmetic overlap, though only one task
computes at a time. The reply to a result is the next task.
"""

import asyncio
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from common.errors import RequestRefused, WireError
from common.passes import PassKind
from common.saga.arrays import Array
from common.saga.compute import TaskInputs, TaskOutputs, compute
from common.saga.masks import Masks
from common.saga.program import Programs, Step
from common.task_job import TaskJob
from common.wire import messages
from common.wire.channel import Channel, expect
from common.wire.clients import ParameterClient
from lambda_functions.warm import WarmContainer

Finished = messages.TaskDone | messages.TaskError | messages.TaskLacks


@dataclass(frozen=True)
class LeaseTerms:
    """From the ticket."""

    job_id: str
    generation: int
    lease: int
    graph_server: str
    num_parameter_servers: int
    slots: int
    seconds: float
    kernels: str = ""
    memory_mb: int = 0


class Lease:
    def __init__(self, terms: LeaseTerms, channel: Channel, warm: WarmContainer) -> None:
        self._terms, self._channel, self._warm = terms, channel, warm
        warm.enter(f"{terms.job_id}/{terms.generation}")
        self._parameters = ParameterClient(
            channel, num_parameter_servers=terms.num_parameter_servers, generation=terms.generation
        )
        if warm.weights_version >= 0:
            self._parameters.remember(warm.weights_version, warm.weights)
        self._core = ThreadPoolExecutor(1, thread_name_prefix="compute")
        self._tasks = 0

    async def serve(self) -> int:
        """How many tasks it did. Raises WireError when the graph server is gone."""
        welcome = expect(await self._say_hello(), messages.LeaseWelcome)
        programs = welcome.job.programs()
        try:
            async with asyncio.TaskGroup() as group:
                for slot in range(self._terms.slots):
                    group.create_task(self._serve_slot(slot, welcome.job, programs))
        finally:
            self._warm.weights_version, self._warm.weights = self._parameters.remembered()
            self._core.shutdown(wait=False, cancel_futures=True)
        return self._tasks

    async def _say_hello(self) -> messages.AnyMessage:
        terms = self._terms
        held = self._warm.held()
        hello = messages.LeaseHello(terms.generation, terms.lease, terms.kernels, terms.memory_mb, held)
        reply, _ = await self._channel.request(terms.graph_server, hello, deadline=terms.seconds)
        return reply

    async def _serve_slot(self, slot: int, job: TaskJob, programs: Programs) -> None:
        terms, ask = self._terms, 0
        request: messages.Message = messages.NextTask(
            terms.generation, terms.lease, slot, ask, self._warm.take_evicted()
        )
        buffers: list[Array] = []
        while True:
            # The graph server ends a lease before its time is over; this deadline is for one that is gone.
            reply, received = await self._channel.request(
                terms.graph_server, request, buffers, deadline=terms.seconds + 60
            )
            if not isinstance(reply, messages.Task):
                return
            ask += 1
            request, buffers = await self._do(reply, received, (slot, ask), (job, programs))

    async def _do(
        self, task: messages.Task, received: list[Array], place: tuple[int, int], what: tuple[TaskJob, Programs]
    ) -> tuple[Finished, list[Array]]:
        step = self._step(what[1], task)
        rows = self._rows(task, step, received)
        if lacks := tuple(name for name in step.reads if name not in rows):
            terms = self._terms
            return messages.TaskLacks(
                terms.generation, terms.lease, *place, task.pass_, task.position, task.interval, lacks
            ), []
        try:
            outputs, measured = await self._compute(task, step, rows, what)
        except RequestRefused as refused:  # by a parameter server: a gradient is not finite, a version is gone
            return self._error(task, place, refused.why), []
        except WireError:
            raise
        except Exception:
            return self._error(task, place, traceback.format_exc()), []
        self._tasks += 1
        return self._done(task, place, outputs, measured)

    async def _compute(
        self, task: messages.Task, step: Step, rows: dict[str, Array], what: tuple[TaskJob, Programs]
    ) -> tuple[TaskOutputs, tuple[float, int, int]]:
        """With the seconds it took, and the bytes of weights and of gradients."""
        job, programs = what
        weights, fetched = await self._parameters.weights(task.pass_.weights_version, task.pass_.missing_updates)
        masks = Masks(
            seed=job.seed,
            interval=task.interval,
            epoch=task.pass_.epoch,
            training=task.pass_.kind is PassKind.TRAIN,
        )
        inputs = TaskInputs(rows, weights, masks, job.loss)
        began = time.monotonic()
        outputs = await asyncio.get_running_loop().run_in_executor(self._core, compute, programs.model, step, inputs)
        seconds = time.monotonic() - began
        # Gradients first: if this function dies before its outputs are taken, the relaunched task repeats them and the
        # weight store drops the repeat. The other order can lose them, and pipe mode would wait for ever.
        sent = 0
        if outputs.gradients:
            sent = await self._parameters.push(
                outputs.gradients, pass_=task.pass_, stage=str(step), interval=task.interval
            )
        return outputs, (seconds, fetched, sent)

    def _step(self, programs: Programs, task: messages.Task) -> Step:
        program = {
            PassKind.TRAIN: programs.train,
            PassKind.EVALUATE: programs.evaluate,
            PassKind.PREDICT: programs.predict,
        }[task.pass_.kind]
        return program.steps[task.position]

    def _rows(self, task: messages.Task, step: Step, received: list[Array]) -> dict[str, Array]:
        fresh = dict(zip((*task.constants, *task.rows), received, strict=True))
        rows = self._warm.get(task.interval, step.reads) | fresh
        for name in task.constants:
            # copied: a received buffer keeps its whole message alive
            self._warm.keep((task.interval, name), np.array(fresh[name]))
        return rows

    def _done(
        self,
        task: messages.Task,
        place: tuple[int, int],
        outputs: TaskOutputs,
        measured: tuple[float, int, int],
    ) -> tuple[messages.TaskDone, list[Array]]:
        terms, (seconds, fetched, sent) = self._terms, measured
        names = tuple(outputs.rows)
        message = messages.TaskDone(
            terms.generation,
            terms.lease,
            *place,
            task.pass_,
            task.position,
            task.interval,
            names,
            outputs.sums,
            seconds,
            fetched,
            sent,
            self._warm.take_evicted(),
        )
        return message, [outputs.rows[name] for name in names]

    def _error(self, task: messages.Task, place: tuple[int, int], text: str) -> messages.TaskError:
        terms = self._terms
        evicted = self._warm.take_evicted()
        return messages.TaskError(
            terms.generation, terms.lease, *place, task.pass_, task.position, task.interval, text, evicted
        )

"""A backend on a bench: two real parameter servers, an in-memory network, functions that run in this process.

Whatever a backend asks for is there; what is pushed, and when, is written down.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from common import plugins
from common.passes import Pass, PassKind
from common.saga.arrays import Array
from common.saga.compute import TaskInputs, TaskOutputs, compute, step_gradients
from common.saga.cost import tensor_width
from common.saga.layer import ModelOptions
from common.saga.loss import LossOptions
from common.saga.masks import Masks
from common.saga.program import Kind, Programs, Step
from common.sharding import shard
from common.task_job import TaskJob
from common.wire import messages
from common.wire.channel import InMemoryNetwork, Reply
from common.wire.clients import ParameterClient
from graph_server.backends.base import Backend, BackendOptions, FunctionOptions, Invocation, TensorTask
from graph_server.schedule.lease_events import LeaseSettings
from graph_server.schedule.stragglers import LateAfter
from lambda_functions.lease import Lease, LeaseTerms
from lambda_functions.warm import WarmContainer
from parameter_server.initial_weights import initial_weights
from parameter_server.optimizers import make_optimizer
from parameter_server.server import ParameterServer
from parameter_server.weight_store import WeightStore

PACKAGE = "graph_server.backends"
NUM_SHARDS, NUM_INTERVALS, NUM_CLASSES, ROWS = 2, 3, 3, 11
SEED = 5
JOB = TaskJob(
    model="gin",
    options=ModelOptions(9, NUM_CLASSES, (8, 4), dropout=0.5),
    hoist=True,
    commute=True,
    loss=LossOptions((1.0, 2.0, 0.5), 20.0),
    seed=SEED,
)


@dataclass
class Bench:
    backend: Backend
    network: InMemoryNetwork
    stores: list[WeightStore]
    programs: Programs
    weights: dict[str, Array]
    story: list[str] = field(default_factory=list)
    """What the parameter servers and the tests heard, in order."""

    def tasks(self, pass_: Pass, interval: int = 0) -> list[TensorTask]:
        """One of each tensor stage of the pass, with made-up rows."""
        program = {
            PassKind.TRAIN: self.programs.train,
            PassKind.EVALUATE: self.programs.evaluate,
            PassKind.PREDICT: self.programs.predict,
        }[pass_.kind]
        return [
            TensorTask(pass_, step, position, interval, 1, made_up_rows(self.programs, step, interval))
            for position, step in enumerate(program.steps)
            if step.kind is Kind.APPLY
        ]

    def expected(self, task: TensorTask) -> TaskOutputs:
        """What compute gives when it is called here and now."""
        training = task.pass_.kind is PassKind.TRAIN
        masks = Masks(seed=SEED, interval=task.interval, epoch=task.pass_.epoch, training=training)
        with threadpool_limits(limits=1):
            return compute(self.programs.model, task.step, TaskInputs(task.rows, self.weights, masks, JOB.loss))

    def gives_gradients(self, task: TensorTask) -> bool:
        return bool(step_gradients(self.programs.model, task.step))

    @property
    def received(self) -> list[int]:
        return [store.received(1) for store in self.stores]


def made_up_rows(programs: Programs, step: Step, interval: int) -> dict[str, Array]:
    random = np.random.default_rng(interval)
    rows = {}
    for name in step.reads:
        rows[name] = random.normal(size=(ROWS, tensor_width(programs.model, name))).astype(np.float32)
    if step.has_loss:
        rows["labels"] = random.integers(-1, NUM_CLASSES, (ROWS, 1))
        rows["masks"] = random.integers(0, 8, (ROWS, 1)).astype(np.uint8)
    return rows


@asynccontextmanager
async def bench(name: str) -> AsyncIterator[Bench]:
    """Closed at its end; the file's own work besides (`serve`) runs meanwhile."""
    programs, network, story = JOB.programs(), InMemoryNetwork(), list[str]()
    weights = initial_weights(programs.model.parameters(), SEED, np.float32)
    stores = []
    for number in range(NUM_SHARDS):
        stores.append(WeightStore(shard(weights, NUM_SHARDS, number), make_optimizer("adam", 0.01), NUM_INTERVALS))
        network.join(f"parameter{number}", told(story, ParameterServer(stores[-1]).answer))
    backend = plugins.load(PACKAGE, name).Backend(_options(programs, network))
    network.join("graph0", _answers(backend))
    serving = asyncio.create_task(backend.serve())
    try:
        with threadpool_limits(limits=1):
            yield Bench(backend, network, stores, programs, weights, story)
        await backend.close()
    finally:
        serving.cancel()
        await asyncio.wait({serving})


def _options(programs: Programs, network: InMemoryNetwork) -> BackendOptions:
    channel = network.join("graph0", _nobody)
    leases = LeaseSettings(
        num_intervals=NUM_INTERVALS,
        target=2,
        max_tasks=64,
        seconds=60.0,
        late=LateAfter(ratio=100.0, floor_seconds=60.0, prior_seconds=60.0),
        max_losses=0,
        adopt_after_seconds=0.1,
    )
    return BackendOptions(
        model=programs.model,
        loss=JOB.loss,
        seed=SEED,
        parameters=ParameterClient(channel, num_parameter_servers=NUM_SHARDS),
        threads=2,
        functions=FunctionOptions(JOB, leases, _invoker(network), programs.constants),
    )


def _invoker(network: InMemoryNetwork) -> Callable[[int], Awaitable[Invocation]]:
    """Functions as they are, without the cloud: each invocation serves its lease on this loop."""

    async def invoke(lease: int) -> Invocation:
        channel = network.join(f"lambda{lease}", _nobody)
        terms = LeaseTerms("bench", 1, lease, "graph0", NUM_SHARDS, slots=2, seconds=60.0)
        await Lease(terms, channel, WarmContainer(limit=1 << 20)).serve()
        return Invocation.SERVED

    return invoke


def told(story: list[str], answer: Callable[..., Awaitable[Reply]]) -> Callable[..., Awaitable[Reply]]:
    async def written_down(peer: str, message: messages.AnyMessage, buffers: Sequence[Array]) -> Reply:
        reply = await answer(peer, message, buffers)
        if isinstance(message, messages.PushGradients):
            story.append(f"gradients of {message.stage}")
        return reply

    return written_down


def _answers(backend: Backend) -> Callable[..., Awaitable[Reply]]:
    async def answer(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        return await backend.answer(message, buffers) or (messages.Refused("it is none of mine"), ())

    return answer


async def _nobody(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
    return messages.Refused("nobody asks here"), ()

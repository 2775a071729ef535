"""The lambda backend with functions that run in this loop: real leases, real parameter servers, a network in memory.

A function is killed where a test says: at a request, before it leaves or after its reply came. Nothing of it is left
but its container, which the next invocation finds warm or, if it died, does not find.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from threadpoolctl import threadpool_limits

from common.passes import Pass, PassKind
from common.saga.arrays import Array
from common.saga.program import Kind
from common.sharding import shard
from common.wire import messages
from common.wire.channel import Channel, Faults, InMemoryNetwork, Reply
from common.wire.clients import ParameterClient
from graph_server.backends import hybrid
from graph_server.backends.aws_lambda import Backend
from graph_server.backends.base import BackendOptions, FunctionOptions, Invocation, TaskResult, TensorTask
from graph_server.backends.local_cpu import Backend as LocalBackend
from graph_server.cores import Cores
from graph_server.schedule.lease_events import LeaseSettings
from graph_server.schedule.stragglers import LateAfter
from lambda_functions.lease import Lease, LeaseTerms
from lambda_functions.warm import WarmContainer
from parameter_server.initial_weights import initial_weights
from parameter_server.optimizers import make_optimizer
from parameter_server.server import ParameterServer
from parameter_server.weight_store import WeightStore
from tests.conformance.backend_bench import JOB, NUM_INTERVALS, NUM_SHARDS, SEED, made_up_rows

LEASES = LeaseSettings(
    num_intervals=NUM_INTERVALS,
    target=2,
    max_tasks=64,
    seconds=60.0,
    late=LateAfter(ratio=1000.0, floor_seconds=60.0, prior_seconds=60.0),
    max_losses=1000,
    adopt_after_seconds=0.05,
)
PROGRAMS = JOB.programs()
WEIGHTS = 1 << 20
SECONDS = 60

Kill = Callable[[int, str, messages.Message, bool], bool]
"""(lease, peer, request, whether its reply has come) -> die here."""


@dataclass
class Cloud:
    backend: Backend | hybrid.Backend
    stores: list[WeightStore]
    asked: Counter[str] = field(default_factory=Counter)
    """Requests of functions, by the name of their messages."""
    constants: list[tuple[int, int, str]] = field(default_factory=list)
    """(lease, interval, tensor) of each that was sent."""
    deaths: int = 0
    invocations: int = 0


@dataclass
class Luck:
    """What befalls the functions. `ends`: of the first invocations, which do not even begin; `cores`: of a hybrid
    backend, in place of one that has functions alone."""

    kill: Kill = lambda lease, peer, message, replied: False
    limit: int = WEIGHTS
    """Of the containers, in bytes."""
    ends: tuple[Invocation, ...] = ()
    faults: Faults | None = None
    leases: LeaseSettings = LEASES
    cores: Cores | None = None


def leases(**changed: object) -> LeaseSettings:
    return replace(LEASES, **changed)  # type: ignore[arg-type]


def tasks(pass_: Pass, interval: int) -> list[TensorTask]:
    """One of each tensor stage of the pass, with made-up rows."""
    program = PROGRAMS.train if pass_.kind is PassKind.TRAIN else PROGRAMS.evaluate
    return [
        TensorTask(pass_, step, position, interval, 1, made_up_rows(PROGRAMS, step, interval))
        for position, step in enumerate(program.steps)
        if step.kind is Kind.APPLY
    ]


async def walk_all(backend: Backend | LocalBackend | hybrid.Backend, pass_: Pass) -> list[TaskResult]:
    """As the scheduler does it: intervals at once, each one's tasks one after the other."""

    async def walk(interval: int) -> list[TaskResult]:
        return [await backend.run(task) for task in tasks(pass_, interval)]

    walks = await asyncio.gather(*(walk(interval) for interval in range(NUM_INTERVALS)))
    return [result for walked in walks for result in walked]


@asynccontextmanager
async def cloud(luck: Luck | None = None) -> AsyncIterator[Cloud]:
    luck = luck or Luck()
    network = InMemoryNetwork(luck.faults)
    stores = parameter_servers(network)
    made: list[Cloud] = []
    functions = _Functions(network, luck, made)
    options = FunctionOptions(JOB, luck.leases, functions.invoke, PROGRAMS.constants)
    made_from = backend_options(network, options)
    hybrid_too = None if luck.cores is None else replace(made_from, cores=luck.cores)
    backend = Backend(made_from) if hybrid_too is None else hybrid.Backend(hybrid_too)
    made.append(Cloud(backend, stores))
    network.join("graph0", functions.answer)
    async with asyncio.timeout(SECONDS):
        serving = asyncio.create_task(backend.serve())
        try:
            with threadpool_limits(limits=1):
                yield made[0]
                await backend.close()
        finally:
            serving.cancel()
            await asyncio.wait({serving})


@asynccontextmanager
async def on_this_machine() -> AsyncIterator[tuple[LocalBackend, list[WeightStore]]]:
    network = InMemoryNetwork()
    stores = parameter_servers(network)
    backend = LocalBackend(backend_options(network, None))
    with threadpool_limits(limits=1):
        yield backend, stores
        await backend.close()


def parameter_servers(network: InMemoryNetwork) -> list[WeightStore]:
    weights, stores = initial_weights(PROGRAMS.model.parameters(), SEED, "float32"), []
    for number in range(NUM_SHARDS):
        stores.append(WeightStore(shard(weights, NUM_SHARDS, number), make_optimizer("adam", 0.01), NUM_INTERVALS))
        network.join(f"parameter{number}", ParameterServer(stores[-1]).answer)
    return stores


def backend_options(network: InMemoryNetwork, functions: FunctionOptions | None) -> BackendOptions:
    channel = network.join("other0", _nobody)
    parameters = ParameterClient(channel, num_parameter_servers=NUM_SHARDS)
    return BackendOptions(PROGRAMS.model, JOB.loss, SEED, parameters, threads=2, functions=functions)


async def _nobody(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
    return messages.Refused("nobody asks here"), ()


class _Functions:
    """Invoked by the backend; its containers wait for the next invocation, the last one first."""

    def __init__(self, network: InMemoryNetwork, luck: Luck, made: list[Cloud]) -> None:
        self._network, self._luck, self._made = network, luck, made
        self._containers: list[WarmContainer] = []
        self._ends = list(luck.ends)

    async def invoke(self, lease: int) -> Invocation:
        self._made[0].invocations += 1
        if self._ends:
            return self._ends.pop(0)
        container = self._containers.pop() if self._containers else WarmContainer(self._luck.limit)
        terms = LeaseTerms("small", 1, lease, "graph0", NUM_SHARDS, slots=2, seconds=float(SECONDS))
        channel = _Mortal(self._network.join(f"lambda{lease}", _nobody), lease, self._luck.kill, self._made[0])
        invocation = asyncio.create_task(Lease(terms, channel, container).serve())
        channel.invocation = invocation
        try:
            await asyncio.wait({invocation})
        finally:
            invocation.cancel()
        if invocation.cancelled() or invocation.exception() is not None:
            return Invocation.LOST
        self._containers.append(container)
        return Invocation.SERVED

    async def answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        reply = await self._made[0].backend.answer(message, buffers) or (messages.Refused("it is none of mine"), ())
        if isinstance(reply[0], messages.Task):
            lease, task = int(peer.removeprefix("lambda")), reply[0]
            self._made[0].constants += [(lease, task.interval, name) for name in task.constants]
        return reply


class _Mortal:
    """A function's channel."""

    invocation: "asyncio.Task[int]"
    is_dead = False

    def __init__(self, channel: Channel, lease: int, kill: Kill, made: Cloud) -> None:
        self._channel, self._lease, self._kill, self._made = channel, lease, kill, made

    async def request(
        self, peer: str, message: messages.Message, buffers: Sequence[Array] = (), *, deadline: float
    ) -> tuple[messages.AnyMessage, list[Array]]:
        self._made.asked[type(message).__name__] += 1
        await self._die_if(peer, message, False)
        reply = await self._channel.request(peer, message, buffers, deadline=deadline)
        await self._die_if(peer, message, True)
        return reply

    async def _die_if(self, peer: str, message: messages.Message, replied: bool) -> None:
        if self.is_dead or self._kill(self._lease, peer, message, replied):
            self._made.deaths += not self.is_dead
            self.is_dead = True
            self.invocation.cancel()
            await asyncio.Event().wait()

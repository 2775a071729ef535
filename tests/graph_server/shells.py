"""One graph server's shell over the in-memory network, and a scripted parameter server: `train 1`, then the end."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from common.passes import train
from common.saga.arrays import Array
from common.trace import StepRecord
from common.wire import messages
from common.wire.channel import InMemoryNetwork, Reply, refusing
from common.wire.clients import GraphClient, ParameterClient
from graph_server.backends import local_cpu
from graph_server.backends.base import BackendOptions
from graph_server.schedule.events import Reason
from graph_server.schedule.scheduler import Mode, Scheduler
from graph_server.server import GraphServer, Links, ShellOptions
from graph_server.stages.held import Held
from graph_server.stages.load import load_constants
from parameter_server.initial_weights import initial_weights
from tests.cluster.small_jobs import SmallJob

GENERATION = 3
LONG = 60.0
"""Seconds after which a test gives up: a run that hangs fails."""


@dataclass
class ScriptedParameters:
    """Opens `train 1`, and ends the job when `num_intervals` have finished it."""

    job: SmallJob
    num_intervals: int
    ended: str = "Completed"
    reports: dict[int, dict[str, float]] = field(default_factory=dict)
    gradients: int = 0

    def __post_init__(self) -> None:
        self._end = asyncio.Event()
        self.weights = initial_weights(self.job.programs.model.parameters(), self.job.seed, np.float32)

    async def answer(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        match message:
            case messages.AwaitClock(_, seen):
                return await self._clock(seen), ()
            case messages.PullWeights(_, version):
                return messages.Weights(version, tuple(self.weights)), list(self.weights.values())
            case messages.PushGradients():
                self.gradients += 1
            case messages.IntervalFinished(_, _, interval, sums):
                self._reported(interval, sums)
        return messages.Done(), ()

    async def _clock(self, seen: int) -> messages.Clock:
        if seen == 0:
            return messages.Clock(1, train(1))
        await self._end.wait()
        return messages.Clock(2, None, self.ended)

    def _reported(self, interval: int, sums: dict[str, float]) -> None:
        self.reports[interval] = sums
        if len(self.reports) == self.num_intervals:
            self._end.set()


class Shell:
    """Graph server 0 of `num_graph_servers`; made inside a running loop."""

    def __init__(
        self,
        job: SmallJob,
        num_graph_servers: int = 1,
        *,
        mode: Mode = "pipe",
        make_backend: Callable[[BackendOptions], local_cpu.Backend] = local_cpu.Backend,
    ) -> None:
        partition = job.partitions(num_graph_servers)[0]
        self.held = Held(job.programs, partition, seed=job.seed)
        load_constants(self.held)
        self.network = InMemoryNetwork()
        self.parameters = ScriptedParameters(job, len(partition.own))
        self.network.join("parameter0", self.parameters.answer)
        self.records: list[StepRecord] = []
        channel = self.network.join("graph0", lambda *asked: self.server.answer(*asked))
        client = ParameterClient(channel, num_parameter_servers=1, generation=GENERATION)
        options = BackendOptions(model=job.programs.model, loss=job.loss, seed=job.seed, parameters=client, threads=2)
        self.server = GraphServer(
            self.held,
            Scheduler(
                job.programs,
                feeds=(partition.in_edges.feeds, partition.out_edges.feeds),
                num_intervals=job.num_intervals,
                mode=mode,
                places={"graph": 2, "tensor": 2},
            ),
            backend=make_backend(options),
            links=Links(client, GraphClient(channel, generation=GENERATION)),
            options=ShellOptions(2, self.records.append, GENERATION),
        )

    async def ask(self, message: messages.Message, *buffers: Array) -> messages.Message:
        """As another role would: an error of ours is a refusal."""
        reply, _ = await refusing(self.server.answer)("graph1", message, list(buffers))  # type: ignore[arg-type]
        return reply

    async def run(self) -> Reason:
        async with asyncio.timeout(LONG):
            return await self.server.run()


def threads_left() -> list[str]:
    """Of the pools of graph servers: none may outlive a run."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith(("graph_", "tensor_"))]

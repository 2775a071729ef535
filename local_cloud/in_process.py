"""All roles of a job in this one process: graph servers and parameter servers on one loop, joined in memory.

The interfaces are those of separate processes: every message is encoded and decoded, nothing is shared but the files.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from common.errors import SpecError, first_error
from common.kernel_names import kernel_names
from common.passes import Pass, predict
from common.saga.arrays import Array
from common.sharding import join
from common.wire import messages
from common.wire.channel import Faults, InMemoryNetwork, Reply
from common.wire.clients import GraphClient, ParameterClient
from graph_server.assemble import AssemblyOptions, graph_server
from graph_server.graph.partition import Partition, deal_folder
from graph_server.graph.partition_book import PartitionBook
from graph_server.server import GraphServer
from local_cloud.prepare import PreparedJob
from local_cloud.run_result import RunResult, Totals, Watch
from parameter_server.assemble import training_clock, weight_store
from parameter_server.server import ClockKeeper, ParameterServer
from parameter_server.training_clock import ClockState, Stopped
from parameter_server.weight_store import WeightStore

__all__ = ["LAUNCHER", "RunResult", "Watch", "first_error", "run_in_process"]

LAUNCHER = "launcher0"


def run_in_process(
    job: PreparedJob, watch: Watch | None = None, *, faults: Faults | None = None, dtype: Any = np.float32
) -> RunResult:
    """Train to the end. Raises the first error of a role; Ctrl-C is the caller's, through `watch.stoppable`."""
    if job.spec.backend.name not in ("auto", "local_cpu"):
        raise SpecError(
            f"backend {job.spec.backend.name} in one process",
            why="its functions are processes that need an address to dial",
            fix="remove --in-process, or use backend local_cpu",
        )
    # One BLAS thread per task, whatever the environment says: the number of threads changes a product's last bits.
    with threadpool_limits(limits=1):
        try:
            return asyncio.run(_Run(job, watch or Watch(), faults, dtype).run())
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors


class _Run:
    def __init__(self, job: PreparedJob, watch: Watch, faults: Faults | None, dtype: Any) -> None:
        self.job, self.watch, self.dtype = job, watch, np.dtype(dtype)
        self.network = InMemoryNetwork(faults)
        cluster = job.spec.cluster
        self.num_shards, self.num_servers = cluster.num_parameter_servers, cluster.num_graph_servers
        self.book: PartitionBook = deal_folder(job.folder, self.num_servers)
        self.clock = training_clock(job.spec, job.facts)
        self.stores: list[WeightStore] = []

    async def run(self) -> RunResult:
        keeper = self._parameter_servers()
        servers, partitions = self._graph_servers()
        self.watch.stoppable(keeper.request_stop)
        try:
            async with asyncio.TaskGroup() as group:
                for server in servers:
                    group.create_task(server.run())
                await keeper.start()
            assert keeper.stopped is not None
            return await self._result(keeper.stopped, partitions)
        except BaseException as error:
            self.watch.cut_short(self._what_there_is(first_error(error), partitions))
            raise

    def _what_there_is(self, error: BaseException, partitions: Sequence[Partition]) -> RunResult:
        """Asks the weight stores themselves: after an error nobody answers a message."""
        cancelled = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        state = ClockState.STOPPED if cancelled else ClockState.FAILED
        best, last = self.clock.best_version, min(store.version for store in self.stores)
        stopped = Stopped(state, "stopped at once" if cancelled else str(error), best, last)
        versions = [None if v is None else join([dict(s.pull(v) or {}) for s in self.stores]) for v in (best, last)]
        return self._with_counts(stopped, partitions, best=versions[0], last=versions[1] or {}, logits=None)

    def _parameter_servers(self) -> ClockKeeper:
        servers = []
        for number in range(self.num_shards):
            self.stores.append(weight_store(self.job.spec, self.job.facts, number, dtype=self.dtype))
            servers.append(ParameterServer(self.stores[-1]))
            channel = self.network.join(f"parameter{number}", servers[-1].answer)
            if number == 0:
                client = ParameterClient(channel, num_parameter_servers=self.num_shards)
        servers[0].keeper = ClockKeeper(self.clock, client, self.watch.on_epoch, self.num_shards)
        return servers[0].keeper

    def _graph_servers(self) -> tuple[list[GraphServer], list[Partition]]:
        partitions = [Partition.load(self.job.folder, self.book, number) for number in range(self.num_servers)]
        return [self._graph_server(partition) for partition in partitions], partitions

    def _graph_server(self, partition: Partition) -> GraphServer:
        answers = _Later()
        channel = self.network.join(f"graph{partition.server}", answers)
        options = AssemblyOptions(record=self.watch.record, dtype=self.dtype)
        answers.server = graph_server(self.job.spec, self.job.facts, partition, channel, options)
        return answers.server

    async def _result(self, stopped: Stopped, partitions: Sequence[Partition]) -> RunResult:
        channel = self.network.join(LAUNCHER, _nobody)
        weights = ParameterClient(channel, num_parameter_servers=self.num_shards)
        last, _ = await weights.weights(stopped.last_version)
        best, logits = None, None
        if stopped.best_version is not None:
            best, _ = await weights.weights(stopped.best_version)
            if stopped.state.value != "Failed":
                logits = await self._logits(GraphClient(channel), predict(stopped.last_version, stopped.best_version))
        return self._with_counts(stopped, partitions, best=best, last=last, logits=logits)

    def _with_counts(
        self,
        stopped: Stopped,
        partitions: Sequence[Partition],
        *,
        best: Mapping[str, Array] | None,
        last: Mapping[str, Array],
        logits: Array | None,
    ) -> RunResult:
        intervals, ghosts = (len(p.own) for p in partitions), (p.in_edges.num_ghosts for p in partitions)
        totals = Totals(kernels=frozenset({kernel_names()}))
        return RunResult(stopped, best, last, logits, self.network.traffic, tuple(intervals), tuple(ghosts), totals)

    async def _logits(self, graph: GraphClient, pass_: Pass) -> Array:
        blocks = [
            await graph.rows(int(self.book.owners[interval]), "logits", pass_=pass_, interval=interval)
            for interval in range(self.job.num_intervals)
        ]
        return np.concatenate(blocks)


class _Later:
    """The answer of a graph server that is made after it has joined."""

    server: GraphServer

    async def __call__(self, peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
        return await self.server.answer(peer, message, buffers)


async def _nobody(peer: str, message: messages.AnyMessage, buffers: list[Array]) -> Reply:
    return messages.Refused("the launcher answers nobody"), ()

"""All roles of a job in this one process: graph servers and parameter servers on one loop, joined in memory.

The interfaces are those of separate processes: every message is encoded and decoded, nothing is shared but the files.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from common.errors import SpecError, first_error
from common.kernel_names import kernel_names
from common.passes import Pass, predict
from common.saga.arrays import Array
from common.sharding import join
from common.wire import messages
from common.wire.channel import Channel, Faults, InMemoryNetwork, Reply
from common.wire.clients import GraphClient, ParameterClient
from graph_server.assemble import AssemblyOptions, graph_server
from graph_server.graph.partition import Partition, deal_folder
from graph_server.graph.partition_book import PartitionBook
from graph_server.server import GraphServer
from local_cloud.generations import Origin
from local_cloud.prepare import PreparedJob
from local_cloud.run_result import Load, RunResult, Totals, Watch
from parameter_server.assemble import checkpoint_place, training_clock, weight_store
from parameter_server.checkpoint import read_checkpoint
from parameter_server.checkpoint_keeper import CheckpointKeeper
from parameter_server.clock_events import ClockState, Stopped
from parameter_server.clock_keeper import ClockKeeper
from parameter_server.server import ParameterServer, ShardPlace
from parameter_server.weight_store import WeightStore

__all__ = ["LAUNCHER", "RunResult", "Watch", "first_error", "run_in_process"]

LAUNCHER = "launcher0"
LOAD_SECONDS = 1.0


@dataclass(frozen=True)
class Saving:
    """Where checkpoints go (URL of their folder; None: nowhere), whose they are, and which one the run starts from."""

    checkpoints: str | None = None
    job_id: str = ""
    origin: Origin = field(default_factory=Origin)


def run_in_process(
    job: PreparedJob,
    watch: Watch | None = None,
    *,
    faults: Faults | None = None,
    dtype: Any = np.float32,
    saving: Saving | None = None,
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
            run = _Run(job, watch or Watch(), saving or Saving(), faults=faults, dtype=dtype)
            return asyncio.run(run.run())
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors


class _Run:
    def __init__(self, job: PreparedJob, watch: Watch, saving: Saving, *, faults: Faults | None, dtype: Any) -> None:
        self.job, self.watch, self.dtype = job, watch, np.dtype(dtype)
        self.network = InMemoryNetwork(faults)
        cluster = job.spec.cluster
        self.num_shards, self.num_servers = cluster.num_parameter_servers, cluster.num_graph_servers
        self.book: PartitionBook = deal_folder(job.folder, self.num_servers)
        start, url, generation = saving.origin.checkpoint, saving.checkpoints, saving.origin.generation
        self.generation, self.resumed = generation, None if start is None else read_checkpoint(start)
        self.checkpoints = checkpoint_place(job.spec, job.facts, url, job_id=saving.job_id, generation=generation)
        self.clock = training_clock(job.spec, job.facts, resumed=self.resumed, saves=url is not None)
        self.stores: list[WeightStore] = []
        self.servers: list[GraphServer] = []

    async def run(self) -> RunResult:
        keeper = self._parameter_servers()
        self.servers, partitions = self._graph_servers()
        self.watch.stoppable(keeper.request_stop)
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(keeper.serve()), group.create_task(self._tell_load())]
                running = [group.create_task(server.run()) for server in self.servers]
                await keeper.start()
                await asyncio.gather(*running)
                for task in beside:
                    task.cancel()
            for note in (await keeper.epochs_after(0)).notes:
                self.watch.note(note)
            assert keeper.stopped is not None
            return await self._result(keeper.stopped, partitions)
        except BaseException as error:
            self.watch.cut_short(self._what_there_is(first_error(error), partitions))
            raise

    async def _tell_load(self) -> None:
        while True:
            await asyncio.sleep(LOAD_SECONDS)
            self.watch.load(Load(0, 0, Totals()))

    def _what_there_is(self, error: BaseException, partitions: Sequence[Partition]) -> RunResult:
        """Asks the weight stores themselves: after an error nobody answers a message."""
        cancelled = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        state = ClockState.STOPPED if cancelled else ClockState.FAILED
        so_far = self.clock.so_far(min(store.version for store in self.stores))
        stopped = msgspec.structs.replace(so_far, state=state, reason="stopped at once" if cancelled else str(error))
        best, last = (self._weights(version) for version in (stopped.best_version, stopped.last_version))
        return self._with_counts(stopped, partitions, best=best, last=last or {}, logits=None)

    def _weights(self, version: int | None) -> dict[str, Array] | None:
        return None if version is None else join([dict(store.pull(version) or {}) for store in self.stores])

    def _parameter_servers(self) -> ClockKeeper:
        servers, saved = [], self.checkpoints
        for number in range(self.num_shards):
            self.stores.append(
                weight_store(
                    self.job.spec,
                    self.job.facts,
                    number,
                    generation=self.generation,
                    dtype=self.dtype,
                    resumed=self.resumed,
                )
            )
            place = None if saved is None else ShardPlace(number, self.num_shards, saved.folder)
            servers.append(ParameterServer(self.stores[-1], generation=self.generation, place=place))
            channel = self.network.join(f"parameter{number}", servers[-1].answer)
            if number == 0:
                client = self._parameter_client(channel)
        servers[0].keeper = ClockKeeper(
            self.clock,
            self.stores[0],
            client,
            num_shards=self.num_shards,
            on_epoch=self.watch.on_epoch,
            checkpoints=None if saved is None else CheckpointKeeper(saved, client),
        )
        return servers[0].keeper

    def _parameter_client(self, channel: Channel) -> ParameterClient:
        return ParameterClient(channel, num_parameter_servers=self.num_shards, generation=self.generation)

    def _graph_servers(self) -> tuple[list[GraphServer], list[Partition]]:
        partitions = [Partition.load(self.job.folder, self.book, number) for number in range(self.num_servers)]
        return [self._graph_server(partition) for partition in partitions], partitions

    def _graph_server(self, partition: Partition) -> GraphServer:
        answers = _Later()
        channel = self.network.join(f"graph{partition.server}", answers)
        options = AssemblyOptions(record=self.watch.record, generation=self.generation, dtype=self.dtype)
        answers.server = graph_server(self.job.spec, self.job.facts, partition, channel, options)
        return answers.server

    async def _result(self, stopped: Stopped, partitions: Sequence[Partition]) -> RunResult:
        channel = self.network.join(LAUNCHER, _nobody)
        weights = self._parameter_client(channel)
        last, _ = await weights.weights(stopped.last_version)
        best, logits = None, None
        if stopped.best_version is not None:
            best, _ = await weights.weights(stopped.best_version)
            if stopped.state.value != "Failed":
                graph = GraphClient(channel, generation=self.generation)
                logits = await self._logits(graph, predict(stopped.last_epoch, stopped.best_version))
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
        counts = Counter[str]()
        for server in self.servers:
            counts.update(server.counts)
        if self.checkpoints is not None:
            counts.update(self.checkpoints.folder.requests)
        totals = Totals(counts=counts, kernels=frozenset({kernel_names()}))
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

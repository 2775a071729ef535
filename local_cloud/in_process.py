"""All roles of a job in this one process: graph servers and parameter servers on one loop, joined in memory.

The interfaces are those of separate processes: every message is encoded and decoded, nothing is shared but the files.
"""

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from common import plugins
from common.passes import Pass, predict
from common.saga.arrays import Array
from common.sharding import join, shard
from common.trace import StepRecord
from common.wire import messages
from common.wire.channel import Faults, InMemoryNetwork, Reply, Traffic
from common.wire.clients import GraphClient, ParameterClient
from graph_server.backends.base import BackendOptions
from graph_server.graph.partition import Partition, deal_folder
from graph_server.graph.partition_book import PartitionBook
from graph_server.schedule.scheduler import Scheduler
from graph_server.server import GraphServer, Links
from graph_server.stages.held import Held
from graph_server.stages.load import load_constants
from local_cloud.prepare import PreparedJob
from parameter_server.epoch_metrics import EpochMetrics
from parameter_server.initial_weights import initial_weights
from parameter_server.optimizers import make_optimizer
from parameter_server.server import ClockKeeper, ParameterServer
from parameter_server.training_clock import ClockSettings, ClockState, Stopped, TrainingClock, check_valid_mask
from parameter_server.weight_store import WeightStore

BACKENDS = "graph_server.backends"
LAUNCHER = "launcher0"


@dataclass(frozen=True)
class Watch:
    """What a run tells while it goes. `stoppable` is handed a function that ends it at the next pause."""

    on_epoch: Callable[[EpochMetrics], None] = lambda _: None
    record: Callable[[StepRecord], None] = lambda _: None
    stoppable: Callable[[Callable[[], None]], None] = lambda _: None
    """Called inside the loop, in the task whose cancellation ends the run at once."""
    cut_short: Callable[["RunResult"], None] = lambda _: None
    """Called before an error or a cancellation is raised: what there is."""


@dataclass(frozen=True)
class RunResult:
    """logits [V, classes] in relabelled order, of the best version; None if the run failed or was cut short."""

    stopped: Stopped
    best: Mapping[str, Array] | None
    last: Mapping[str, Array]
    logits: Array | None
    traffic: Traffic
    intervals_per_server: tuple[int, ...]
    ghosts_per_server: tuple[int, ...]


def run_in_process(
    job: PreparedJob, watch: Watch | None = None, *, faults: Faults | None = None, dtype: Any = np.float32
) -> RunResult:
    """Train to the end. Raises the first error of a role; Ctrl-C is the caller's, through `watch.stoppable`."""
    # One BLAS thread per task, whatever the environment says: the number of threads changes a product's last bits.
    with threadpool_limits(limits=1):
        try:
            return asyncio.run(_Run(job, watch or Watch(), faults, dtype).run())
        except BaseExceptionGroup as errors:
            raise first_error(errors) from errors


def first_error(error: BaseException) -> BaseException:
    """What went wrong first, out of the groups that task groups wrap around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Run:
    def __init__(self, job: PreparedJob, watch: Watch, faults: Faults | None, dtype: Any) -> None:
        self.job, self.watch, self.dtype = job, watch, np.dtype(dtype)
        self.network = InMemoryNetwork(faults)
        cluster = job.spec.cluster
        self.num_shards, self.num_servers = cluster.num_parameter_servers, cluster.num_graph_servers
        self.book: PartitionBook = deal_folder(job.folder, self.num_servers)
        self.clock = TrainingClock(clock_settings(job), job.num_intervals)
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
        training, model = self.job.spec.training, self.job.programs.model
        weights = initial_weights(model.parameters(), training.seed, self.dtype)
        optimizer = make_optimizer(training.optimizer, training.lr, training.momentum, training.weight_decay)
        servers = []
        for number in range(self.num_shards):
            rows = shard(weights, self.num_shards, number)
            self.stores.append(WeightStore(rows, optimizer, self.job.num_intervals))
            servers.append(ParameterServer(self.stores[-1]))
            channel = self.network.join(f"parameter{number}", servers[-1].answer)
            if number == 0:
                client = ParameterClient(channel, num_parameter_servers=self.num_shards)
        servers[0].keeper = ClockKeeper(self.clock, client, self.watch.on_epoch, self.num_shards)
        return servers[0].keeper

    def _graph_servers(self) -> tuple[list[GraphServer], list[Partition]]:
        partitions = [Partition.load(self.job.folder, self.book, number) for number in range(self.num_servers)]
        return [self._graph_server(number, partition) for number, partition in enumerate(partitions)], partitions

    def _graph_server(self, number: int, partition: Partition) -> GraphServer:
        training, threads = self.job.spec.training, usable_cores()
        held = Held(self.job.programs, partition, seed=training.seed, dtype=self.dtype)
        load_constants(held)
        answers = _Later()
        channel = self.network.join(f"graph{number}", answers)
        parameters = ParameterClient(channel, num_parameter_servers=self.num_shards)
        options = BackendOptions(
            model=self.job.programs.model,
            loss=self.job.loss,
            seed=training.seed,
            parameters=parameters,
            threads=threads,
        )
        backend = plugins.load(BACKENDS, backend_name(self.job)).Backend(options)
        others = tuple(n for n in range(self.num_servers) if n != number)
        server = GraphServer(
            number,
            held,
            _scheduler(self.job, partition, places={"graph": threads, "tensor": backend.places}),
            backend=backend,
            links=Links(parameters, GraphClient(channel), others if training.mode == "sync" else ()),
            threads=threads,
            record=self.watch.record,
        )
        answers.server = server
        return server

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
        return RunResult(stopped, best, last, logits, self.network.traffic, tuple(intervals), tuple(ghosts))

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


def _scheduler(job: PreparedJob, partition: Partition, *, places: Mapping[Any, int]) -> Scheduler:
    return Scheduler(
        job.programs,
        feeds_in=partition.in_edges.feeds,
        feeds_out=partition.out_edges.feeds,
        num_intervals=job.num_intervals,
        mode=job.spec.training.mode,  # type: ignore[arg-type]  # async is refused before
        places=places,
    )


def clock_settings(job: PreparedJob) -> ClockSettings:
    training = job.spec.training
    settings = ClockSettings(
        num_epochs=training.num_epochs,
        eval_frequency=1 if training.eval_frequency == "auto" else training.eval_frequency,
        use_early_stop=training.use_early_stop,
        early_stop_rounds=training.early_stop_rounds,
        early_stop_min_delta=training.early_stop_min_delta,
        target_metric=training.target_metric,
    )
    check_valid_mask(settings, int(job.folder.manifest.report.get("valid", 0)))  # type: ignore[call-overload]
    return settings


def backend_name(job: PreparedJob) -> str:
    return "local_cpu" if job.spec.backend.name == "auto" else job.spec.backend.name


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def seconds_now() -> float:
    return time.monotonic()

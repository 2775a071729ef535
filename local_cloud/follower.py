"""While the roles of a job run: its epochs as they come, what is in flight, and at its end the results of them all.

The launcher is a peer like any other: it asks parameter server 0 for epochs and everybody for results.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp
import numpy as np

from common.epoch_metrics import EpochMetrics
from common.errors import DorylusError, PeerLost
from common.passes import Pass, predict
from common.pricing import MB_PER_GB
from common.s3_requests import S3_READS, S3_WRITES
from common.saga.arrays import Array
from common.wire import messages
from common.wire.channel import Channel, Traffic, expect
from common.wire.clients import GraphClient, ParameterClient
from graph_server.graph.partition import deal_folder
from local_cloud.generations import Origin
from local_cloud.lambda_process import LambdaProcess
from local_cloud.prepare import PreparedJob
from local_cloud.run_result import Load, RunResult, Totals, Watch
from parameter_server.clock_events import ClockState, Stopped

RESULT_SECONDS = 120.0
EPOCH_SECONDS = 24 * 3600.0
STATUS_SECONDS = 1.0
LAST_SECONDS = 3.0
"""How long the parameter servers may take to hand out weights and reports after a role was lost."""


@dataclass
class Reports:
    """What roles told at the end."""

    traffic: Traffic = field(default_factory=Traffic)
    counts: dict[str, int] = field(default_factory=dict)
    kernels: set[str] = field(default_factory=set)
    pss_bytes: int = 0
    intervals: list[int] = field(default_factory=list)
    ghosts: list[int] = field(default_factory=list)

    def add(self, report: messages.RoleReport) -> None:
        self.traffic.payload.update(report.payload)
        self.traffic.overhead.update(report.overhead)
        for name, count in report.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        if "intervals" in report.counts:
            self.intervals.append(report.counts["intervals"])
            self.ghosts.append(report.counts["ghosts"])
        self.kernels.update(report.kernels)
        self.pss_bytes += report.peak_pss_bytes


class Follower:
    """Of one generation; `origin` says where it started. `functions`: None where graph servers alone meter them."""

    def __init__(
        self, job: PreparedJob, channel: Channel, watch: Watch, functions: LambdaProcess | None, origin: Origin
    ) -> None:
        self._job, self._channel, self._watch, self._functions = job, channel, watch, functions
        cluster, self._origin, self._generation = job.spec.cluster, origin, origin.generation
        self._graph = [f"graph{n}" for n in range(cluster.num_graph_servers)]
        self._parameter = [f"parameter{n}" for n in range(cluster.num_parameter_servers)]
        self._weights = ParameterClient(
            channel, num_parameter_servers=cluster.num_parameter_servers, generation=self._generation
        )
        self._metrics: list[EpochMetrics] = []
        self._notes = 0
        self._reports, self._meter = Reports(), dict[str, float]()
        self._status: dict[str, messages.RoleStatus] = {}

    @property
    def traffic(self) -> Traffic:
        return self._reports.traffic

    @property
    def totals(self) -> Totals:
        told = self._reports
        return Totals(
            counts=told.counts or {name: self._counted(name) for name in (S3_READS, S3_WRITES)},
            kernels=frozenset(told.kernels),
            peak_pss_bytes=told.pss_bytes,
            lambda_gb_seconds=float(self._meter.get("gb_seconds", 0.0)),
            lambda_requests=int(self._meter.get("requests", 0)),
        )

    @property
    def last_epoch(self) -> int:
        """The last that ended."""
        return self._metrics[-1].epoch if self._metrics else self._origin.epoch

    async def follow(self) -> RunResult:
        """Until the job has ended. Raises PeerLost if it ended because nobody heard of a role any more."""
        self._watch.stoppable(self._stopper())
        looking = asyncio.create_task(self._look())
        try:
            news = await self._epochs()
        finally:
            looking.cancel()
            await asyncio.wait({looking})
        return await self._result(news)

    async def tell_what_there_is(self) -> None:
        """After an error: the weights so far and the reports, of parameter servers that still answer."""
        with contextlib.suppress(DorylusError, TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await asyncio.gather(self._tell_weights(), self._collect_from(self._parameter))
        # Graph servers report at the end only: without one, what they told last has to do.
        told = () if self._reports.intervals else [self._status[name] for name in self._graph if name in self._status]
        for status in told:
            self._reports.add(messages.RoleReport(status.payload, status.overhead, status.counts))

    async def _tell_weights(self) -> None:
        news = await self._ask_for_epochs(len(self._metrics) - 1) if self._metrics else messages.Epochs(())
        best, last_version = news.best_version, news.last_version or self._origin.version
        last, _ = await self._weights.weights(last_version)
        best_weights = None if best is None else (await self._weights.weights(best))[0]
        stopped = Stopped(ClockState.FAILED, "a role was lost", best, last_version, news.best_epoch, self.last_epoch)
        self._watch.cut_short(self._with_counts(stopped, best_weights, last, None))

    async def read_meter(self) -> None:
        """What the functions have used, as far as the service still tells; or as their graph servers have counted."""
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            if self._functions is not None:
                self._meter = await self._functions.meter()
            else:
                gb_seconds = self._counted("function_mb_ms") / (1000 * MB_PER_GB)
                self._meter = {"gb_seconds": gb_seconds, "requests": self._counted("function_requests")}

    async def _open_leases(self) -> int:
        return self._counted("functions_open") if self._functions is None else await self._functions.open_leases()

    def _counted(self, name: str) -> int:
        """By all roles: reported at the end, told before."""
        if self._reports.intervals:
            return self._reports.counts.get(name, 0)
        return sum(status.counts.get(name, 0) for status in self._status.values())

    def _stopper(self) -> Callable[[str], None]:
        loop, asked = asyncio.get_running_loop(), set[asyncio.Task[None]]()

        async def ask(reason: str) -> None:
            message = messages.RequestStop(self._generation, reason)
            with contextlib.suppress(DorylusError):  # the job has ended, well or badly, which others notice
                await self._channel.request(self._parameter[0], message, deadline=RESULT_SECONDS)

        def stop(reason: str) -> None:
            asked.add(loop.create_task(ask(reason)))

        return stop

    # ---- while it goes

    async def _look(self) -> None:
        """What is in flight, and what was used so far, for whoever watches."""
        message = messages.PullStatus(self._generation)
        while True:
            await asyncio.sleep(STATUS_SECONDS)
            with contextlib.suppress(DorylusError, aiohttp.ClientError, TimeoutError):
                for name in (*self._graph, *self._parameter):
                    reply, _ = await self._channel.request(name, message, deadline=RESULT_SECONDS)
                    self._status[name] = expect(reply, messages.RoleStatus)
                in_flight = sum(status.tasks_in_flight for status in self._status.values())
                await self.read_meter()
                self._watch.load(Load(in_flight, await self._open_leases(), self.totals))

    async def _epochs(self) -> messages.Epochs:
        while True:
            news = await self._ask_for_epochs(len(self._metrics))
            if news.is_lost:
                raise PeerLost(
                    news.reason, why="its process hangs, or does not get any time", fix="start the job again"
                )
            if news.ended is not None:
                return news

    async def _ask_for_epochs(self, seen: int) -> messages.Epochs:
        """Waits until there are more than `seen`, and tells those that are new."""
        message = messages.AwaitEpochs(self._generation, seen)
        reply, _ = await self._channel.request(self._parameter[0], message, deadline=EPOCH_SECONDS)
        news = expect(reply, messages.Epochs)
        for metrics in news.epochs[len(self._metrics) - seen :]:
            self._metrics.append(metrics)
            self._watch.on_epoch(metrics)
        for note in news.notes[self._notes :]:
            self._watch.note(note)
        self._notes = len(news.notes)
        return news

    # ---- at the end

    async def _result(self, news: messages.Epochs) -> RunResult:
        versions = news.best_version, news.last_version
        stopped = Stopped(ClockState(news.ended), news.reason, *versions, news.best_epoch, news.last_epoch)
        last, _ = await self._weights.weights(stopped.last_version)
        best, logits = None, None
        if stopped.best_version is not None:
            best, _ = await self._weights.weights(stopped.best_version)
            if stopped.state is not ClockState.FAILED:
                logits = await self._logits(predict(stopped.last_epoch, stopped.best_version))
        await self._collect()
        return self._with_counts(stopped, best, last, logits)

    async def _logits(self, pass_: Pass) -> Array:
        owners = deal_folder(self._job.folder, len(self._graph)).owners
        graph = GraphClient(self._channel, generation=self._generation)
        blocks = [
            await graph.rows(int(owners[interval]), "logits", pass_=pass_, interval=interval)
            for interval in range(self._job.num_intervals)
        ]
        return np.concatenate(blocks)

    async def _collect(self) -> None:
        # Graph servers first: when they have answered, their leases are over and all functions' bytes are counted.
        await self._collect_from([*self._graph, *self._parameter])
        await self.read_meter()

    async def _collect_from(self, names: Sequence[str]) -> None:
        for name in names:
            message = messages.PullReport(self._generation)
            reply, _ = await self._channel.request(name, message, deadline=RESULT_SECONDS)
            self._reports.add(expect(reply, messages.RoleReport))

    def _with_counts(
        self, stopped: Stopped, best: Mapping[str, Array] | None, last: Mapping[str, Array], logits: Array | None
    ) -> RunResult:
        told = self._reports
        of_servers = tuple(told.intervals), tuple(told.ghosts)
        return RunResult(stopped, best, last, logits, told.traffic, *of_servers, self.totals)

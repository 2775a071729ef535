"""All roles of a job as processes of this machine, joined by the real transport; the same results as in one process.

    keys -> local Lambda service -> roles, each with a pipe -> address book -> epochs come -> results -> pipes closed

The launcher is a peer like any other: it asks parameter server 0 for epochs and everybody for results.
"""

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from common import trace
from common.errors import DorylusError
from common.passes import Pass, predict
from common.role_start import AddressBook, FunctionPlace, RoleStart
from common.saga.arrays import Array
from common.wire import messages
from common.wire.channel import Channel, Traffic, expect
from common.wire.clients import GraphClient, ParameterClient
from common.wire.identity import Identity
from common.wire.keys import KeyPair, Token, new_key_pair, new_token
from common.wire.zmq_channel import Dialer
from graph_server.graph.partition import deal_folder
from local_cloud.costs import run_cost
from local_cloud.in_process import LAUNCHER
from local_cloud.lambda_process import FUNCTION, REGION, LambdaProcess
from local_cloud.lambda_service.settings import Faults
from local_cloud.prepare import PreparedJob
from local_cloud.roles import RoleProcess
from local_cloud.run_result import RunResult, Status, Totals, Watch
from parameter_server.epoch_metrics import EpochMetrics
from parameter_server.training_clock import ClockState, Stopped

GENERATION = 1
LOCAL_CONCURRENCY = 16
"""Of the local Lambda service, by default: what one machine can bear."""
FUNCTION_SECONDS_MORE = 30.0
"""A function may live a little longer than its lease."""
RESULT_SECONDS = 120.0
EPOCH_SECONDS = 24 * 3600.0
STATUS_SECONDS = 1.0


@dataclass(frozen=True)
class ClusterOptions:
    """secure: CURVE over TCP instead of ipc. log_dir: where roles' stderr goes; None: a temporary folder."""

    secure: bool = False
    concurrency: int = LOCAL_CONCURRENCY
    faults: Faults = field(default_factory=Faults)
    log_dir: Path | None = None


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
            self.intervals.insert(0, report.counts["intervals"])
            self.ghosts.insert(0, report.counts["ghosts"])
        self.kernels.update(report.kernels)
        self.pss_bytes += report.peak_pss_bytes


class Cluster:
    """One job. `run` may be called once; whatever happens, no process is left."""

    def __init__(self, job: PreparedJob, job_id: str, options: ClusterOptions | None = None) -> None:
        self.job, self.job_id, self.options = job, job_id, options or ClusterOptions()
        spec = job.spec.cluster
        self._names = [f"parameter{n}" for n in range(spec.num_parameter_servers)]
        self._names += [f"graph{n}" for n in range(spec.num_graph_servers)]
        self.roles: list[RoleProcess] = []
        self.functions: LambdaProcess | None = None
        self.reports, self.meter = Reports(), dict[str, float]()
        self._metrics: list[EpochMetrics] = []

    async def run(self, watch: Watch) -> RunResult:
        folder = Path(tempfile.mkdtemp(prefix="dorylus-"))
        try:
            async with AsyncExitStack() as stack:
                channel = await self._start(stack, folder)
                return await self._until_the_end(channel, watch)
        finally:
            for name in self._names:
                _replay(folder / f"{name}.trace", watch)
            shutil.rmtree(folder, ignore_errors=True)

    # ---- start

    async def _start(self, stack: AsyncExitStack, folder: Path) -> Channel:
        secure = self.options.secure
        server_keys = new_key_pair() if secure else None
        shown = {name: _credentials(secure=secure) for name in (*self._names, LAUNCHER)}
        place = await self._start_functions(stack, folder)
        starts = [self._role_start(name, folder, server_keys, shown, place) for name in self._names]
        logs = self.options.log_dir or folder
        self.roles = [RoleProcess(start, logs / f"{start.name}.log") for start in starts]
        stack.push_async_callback(self._end_roles)
        addresses = await asyncio.gather(*(role.launch() for role in self.roles))
        book = AddressBook(dict(zip(self._names, addresses, strict=True)))
        await asyncio.gather(*(role.introduce(book) for role in self.roles))
        me = Identity(self.job_id, GENERATION, LAUNCHER)
        return await stack.enter_async_context(Dialer(me, book.addresses, credentials=shown[LAUNCHER]))

    async def _start_functions(self, stack: AsyncExitStack, folder: Path) -> FunctionPlace | None:
        backend = self.job.spec.backend
        if backend.name != "lambda":
            return None
        self.functions = LambdaProcess(
            folder,
            memory_mb=backend.memory_mb,
            seconds=backend.lease_seconds + FUNCTION_SECONDS_MORE,
            concurrency=self.options.concurrency,
            faults=self.options.faults,
        )
        stack.push_async_callback(self.functions.end)
        await self.functions.launch()
        share = max(1, self.options.concurrency // self.job.spec.cluster.num_graph_servers)
        return FunctionPlace(FUNCTION, REGION, self.functions.endpoint, share)

    def _role_start(
        self,
        name: str,
        folder: Path,
        server_keys: KeyPair | None,
        shown: dict[str, KeyPair | Token],
        place: FunctionPlace | None,
    ) -> RoleStart:
        spec = self.job.spec
        return RoleStart(
            job_id=self.job_id,
            generation=GENERATION,
            name=name,
            spec=json.dumps(spec.model_dump(mode="json", exclude_unset=True)),
            facts=self.job.facts,
            graph_folder=str(self.job.folder.path.resolve()),
            endpoint="tcp://127.0.0.1:*" if self.options.secure else f"ipc://{folder}/{name}",
            server_keys=server_keys,
            credentials=shown[name],
            admitted={peer: credentials.proof for peer, credentials in shown.items()},
            num_graph_servers=spec.cluster.num_graph_servers,
            num_parameter_servers=spec.cluster.num_parameter_servers,
            trace_path=str(folder / f"{name}.trace") if name.startswith("graph") else None,
            functions=place if name.startswith("graph") else None,
        )

    async def _end_roles(self) -> None:
        await asyncio.gather(*(role.end() for role in self.roles))

    # ---- while it runs

    async def _until_the_end(self, channel: Channel, watch: Watch) -> RunResult:
        """Whatever ends first counts: the job, a role, the Lambda service."""
        watchers = [asyncio.create_task(role.watch()) for role in self.roles]
        if self.functions is not None:
            watchers.append(asyncio.create_task(self.functions.watch()))
        job = asyncio.create_task(self._follow(channel, watch))
        try:
            done, _ = await asyncio.wait({job, *watchers}, return_when=asyncio.FIRST_COMPLETED)
            if job not in done or job.cancelled():
                await self._tell_what_there_is(channel, watch)
                for task in done:
                    task.result()
                raise DorylusError("a role ended before the job", fix="start the job again")
            return job.result()
        finally:
            for task in (job, *watchers):
                task.cancel()
            await asyncio.gather(job, *watchers, return_exceptions=True)

    async def _follow(self, channel: Channel, watch: Watch) -> RunResult:
        watch.stoppable(_stopper(channel))
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._look(channel, watch))
            news = await self._epochs(channel, watch)
            looking.cancel()
        return await self._result(channel, news)

    async def _look(self, channel: Channel, watch: Watch) -> None:
        """What is in flight, and what it has cost so far, for whoever watches."""
        began = time.monotonic()
        while True:
            await asyncio.sleep(STATUS_SECONDS)
            in_flight = 0
            for name in self._names:
                if name.startswith("graph"):
                    reply, _ = await channel.request(name, messages.PullStatus(GENERATION), deadline=RESULT_SECONDS)
                    in_flight += expect(reply, messages.RoleStatus).tasks_in_flight
            meter = await self.functions.meter() if self.functions is not None else {}
            totals = Totals(
                lambda_gb_seconds=float(meter.get("gb_seconds", 0.0)), lambda_requests=int(meter.get("requests", 0))
            )
            cost = run_cost(self.job.spec, totals, time.monotonic() - began)
            watch.status(Status(in_flight, cost.usd))

    async def _epochs(self, channel: Channel, watch: Watch) -> messages.Epochs:
        """Until the job has ended."""
        while True:
            reply, _ = await channel.request(
                "parameter0", messages.AwaitEpochs(GENERATION, len(self._metrics)), deadline=EPOCH_SECONDS
            )
            news = expect(reply, messages.Epochs)
            for epoch in news.epochs:
                metrics = EpochMetrics(
                    epoch=epoch.epoch,
                    loss=epoch.loss,
                    train_accuracy=epoch.train_accuracy,
                    valid_accuracy=epoch.valid_accuracy,
                    test_accuracy=epoch.test_accuracy,
                    exact=epoch.exact,
                )
                self._metrics.append(metrics)
                watch.on_epoch(metrics)
            if news.ended is not None:
                return news

    async def _result(self, channel: Channel, news: messages.Epochs) -> RunResult:
        stopped = Stopped(ClockState(news.ended), news.reason, news.best_version, news.last_version)
        weights = ParameterClient(channel, num_parameter_servers=self.job.spec.cluster.num_parameter_servers)
        last, _ = await weights.weights(stopped.last_version)
        best, logits = None, None
        if stopped.best_version is not None:
            best, _ = await weights.weights(stopped.best_version)
            if stopped.state is not ClockState.FAILED:
                logits = await self._logits(GraphClient(channel), predict(stopped.last_version, stopped.best_version))
        await self._collect(channel)
        return self._with_counts(stopped, best, last, logits)

    def _with_counts(
        self, stopped: Stopped, best: Mapping[str, Array] | None, last: Mapping[str, Array], logits: Array | None
    ) -> RunResult:
        told = self.reports
        totals = Totals(
            counts=told.counts,
            kernels=frozenset(told.kernels),
            peak_pss_bytes=told.pss_bytes,
            lambda_gb_seconds=float(self.meter.get("gb_seconds", 0.0)),
            lambda_requests=int(self.meter.get("requests", 0)),
        )
        return RunResult(stopped, best, last, logits, told.traffic, tuple(told.intervals), tuple(told.ghosts), totals)

    async def _logits(self, graph: GraphClient, pass_: Pass) -> Array:
        owners = deal_folder(self.job.folder, self.job.spec.cluster.num_graph_servers).owners
        blocks = [
            await graph.rows(int(owners[interval]), "logits", pass_=pass_, interval=interval)
            for interval in range(self.job.num_intervals)
        ]
        return np.concatenate(blocks)

    async def _collect(self, channel: Channel) -> None:
        # Graph servers first: when they have answered, their leases are over and all functions' bytes are counted.
        for name in reversed(self._names):
            reply, _ = await channel.request(name, messages.PullReport(GENERATION), deadline=RESULT_SECONDS)
            self.reports.add(expect(reply, messages.RoleReport))
        if self.functions is not None:
            self.meter = await self.functions.meter()

    async def _tell_what_there_is(self, channel: Channel, watch: Watch) -> None:
        """After a role was lost: the weights so far, if the parameter servers still answer."""
        done = len(self._metrics)
        rated = [(m.valid_accuracy or 0.0, -m.epoch) for m in self._metrics if m.valid_accuracy is not None]
        best = -max(rated)[1] if rated else None
        client = ParameterClient(channel, num_parameter_servers=self.job.spec.cluster.num_parameter_servers)
        try:
            async with asyncio.timeout(2.0):
                last, _ = await client.weights(done)
                best_weights = (await client.weights(best))[0] if best is not None else None
        except (DorylusError, TimeoutError):
            return
        stopped = Stopped(ClockState.FAILED, "a role was lost", best, done)
        watch.cut_short(self._with_counts(stopped, best_weights, last, None))


def _stopper(channel: Channel) -> Callable[[], None]:
    loop, asked = asyncio.get_running_loop(), set[asyncio.Task[object]]()

    def stop() -> None:
        message = messages.RequestStop(GENERATION)
        task = loop.create_task(channel.request("parameter0", message, deadline=RESULT_SECONDS))
        asked.add(task)

    return stop


def _credentials(*, secure: bool) -> KeyPair | Token:
    return new_key_pair() if secure else new_token()


def _replay(path: Path, watch: Watch) -> None:
    """A graph server's own trace, into the job's."""
    if path.exists():
        for record in trace.read(path):
            watch.record(record)


def run_cluster(job: PreparedJob, job_id: str, watch: Watch, options: ClusterOptions | None = None) -> RunResult:
    """Train to the end. Raises the first error of a role; Ctrl-C is the caller's, through `watch.stoppable`."""
    return asyncio.run(Cluster(job, job_id, options).run(watch))

"""All roles of a job as processes of this machine, joined by the real transport; the same results as in one process.

keys -> local Lambda service -> roles, each with a pipe -> address book -> epochs come -> results -> pipes closed
"""

import asyncio
import json
import shutil
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from common import trace
from common.role_start import AddressBook, FunctionPlace, RoleStart, Weather
from common.wire.identity import Identity
from common.wire.keys import KeyPair, Token, new_key_pair, new_token
from common.wire.zmq_channel import Dialer
from local_cloud.endings import all_of, until_the_end
from local_cloud.follower import Follower
from local_cloud.generations import Origin
from local_cloud.in_process import LAUNCHER
from local_cloud.lambda_process import FUNCTION, LOCAL_CONCURRENCY, REGION, LambdaProcess, concurrency_of_each
from local_cloud.lambda_service.settings import Faults
from local_cloud.prepare import PreparedJob
from local_cloud.roles import RoleProcess
from local_cloud.run_result import RunResult, Watch

WITH_FUNCTIONS = ("lambda", "hybrid")
FUNCTION_SECONDS_MORE = 30.0
"""A function may live a little longer than its lease."""


@dataclass(frozen=True)
class ClusterOptions:
    """secure: CURVE over TCP instead of ipc. log_dir: where the stderr of processes goes; None: a temporary folder.
    faults: of the local Lambda service; weather: of the network, as all roles' listeners make it; graph_weather: as
    graph servers' do, if that is to differ."""

    secure: bool = False
    concurrency: int = LOCAL_CONCURRENCY
    faults: Faults = field(default_factory=Faults)
    weather: Weather = field(default_factory=Weather)
    graph_weather: Weather | None = None
    log_dir: Path | None = None
    checkpoints: str | None = None
    s3_endpoint: str | None = None


@dataclass(frozen=True)
class _Keys:
    """Of one run. `server`: of all listeners, over TCP; `shown`: by peer."""

    server: KeyPair | None
    shown: dict[str, KeyPair | Token]

    @property
    def admitted(self) -> dict[str, str]:
        return {peer: credentials.proof for peer, credentials in self.shown.items()}


class Cluster:
    """One generation of a job. `run` may be called once; whatever happens, no process is left."""

    def __init__(
        self, job: PreparedJob, job_id: str, options: ClusterOptions | None = None, origin: Origin | None = None
    ) -> None:
        self.job, self.job_id, self.options = job, job_id, options or ClusterOptions()
        self.origin = origin or Origin()
        spec, secure = job.spec.cluster, self.options.secure
        self._names = [f"parameter{n}" for n in range(spec.num_parameter_servers)]
        self._names += [f"graph{n}" for n in range(spec.num_graph_servers)]
        shown = {name: new_key_pair() if secure else new_token() for name in (*self._names, LAUNCHER)}
        self.keys = _Keys(new_key_pair() if secure else None, shown)
        self.roles: list[RoleProcess] = []
        self.functions: LambdaProcess | None = None
        self.follower: Follower | None = None
        """Once all roles have started."""

    async def run(self, watch: Watch) -> RunResult:
        """Raises the first error of a role, or PeerLost if one had no last words."""
        folder = Path(tempfile.mkdtemp(prefix="dorylus-"))
        try:
            async with AsyncExitStack() as stack:
                book = await self._start(stack, folder)
                me = Identity(self.job_id, self.origin.generation, LAUNCHER)
                dialer = Dialer(me, book.addresses, credentials=self.keys.shown[LAUNCHER])
                channel = await stack.enter_async_context(dialer)
                self.follower = Follower(self.job, channel, watch, self.functions, self.origin)
                watching = [role.watch() for role in self.roles]
                if self.functions is not None:
                    watching.append(self.functions.watch())
                return await until_the_end(self.follower, watching)
        finally:
            for name in self._names:
                replay(folder / f"{name}.trace", watch, self.origin.generation)
            shutil.rmtree(folder, ignore_errors=True)

    # ---- start

    async def _start(self, stack: AsyncExitStack, folder: Path) -> AddressBook:
        logs = self.options.log_dir or folder
        place = await self._start_functions(stack, folder, logs)
        self.roles = [RoleProcess(self._role_start(name, folder, place), logs / f"{name}.log") for name in self._names]
        stack.push_async_callback(self._end_roles)
        addresses = await all_of([role.launch() for role in self.roles])
        book = AddressBook(dict(zip(self._names, addresses, strict=True)))
        await all_of([role.introduce(book) for role in self.roles])
        return book

    async def _start_functions(self, stack: AsyncExitStack, folder: Path, logs: Path) -> FunctionPlace | None:
        backend = self.job.spec.backend
        if backend.name not in WITH_FUNCTIONS:
            return None
        self.functions = LambdaProcess(
            folder,
            logs / "lambda.log",
            memory_mb=backend.memory_mb,
            seconds=backend.lease_seconds + FUNCTION_SECONDS_MORE,
            concurrency=self.options.concurrency,
            faults=self.options.faults,
        )
        stack.push_async_callback(self.functions.end)
        await self.functions.launch()
        share = concurrency_of_each(self.options.concurrency, self.job.spec.cluster.num_graph_servers)
        return FunctionPlace(FUNCTION, REGION, self.functions.endpoint, share)

    def _role_start(self, name: str, folder: Path, place: FunctionPlace | None) -> RoleStart:
        spec, is_graph = self.job.spec, name.startswith("graph")
        return RoleStart(
            job_id=self.job_id,
            generation=self.origin.generation,
            name=name,
            spec=json.dumps(spec.model_dump(mode="json", exclude_unset=True)),
            facts=self.job.facts,
            graph_folder=str(self.job.folder.path.resolve()),
            endpoint="tcp://127.0.0.1:*" if self.options.secure else f"ipc://{folder}/{name}",
            server_keys=self.keys.server,
            credentials=self.keys.shown[name],
            admitted=self.keys.admitted,
            num_graph_servers=spec.cluster.num_graph_servers,
            num_parameter_servers=spec.cluster.num_parameter_servers,
            scratch=str(folder),
            trace_path=str(folder / f"{name}.trace") if is_graph else None,
            functions=place if is_graph else None,
            checkpoints=None if is_graph else self.options.checkpoints,
            resume=None if is_graph else self.origin.checkpoint,
            s3_endpoint=self.options.s3_endpoint,
            weather=(is_graph and self.options.graph_weather) or self.options.weather,
        )

    async def _end_roles(self) -> None:
        await asyncio.gather(*(role.end() for role in self.roles))
        if self.follower is not None:
            await self.follower.read_meter()


def replay(path: Path, watch: Watch, generation: int) -> None:
    """A graph server's own trace, into the job's."""
    if path.exists():
        for record in trace.read(path):
            watch.record(msgspec.structs.replace(record, generation=generation))
        for decision in trace.lease_decisions(path):
            watch.decided(decision)


def run_cluster(job: PreparedJob, job_id: str, watch: Watch, options: ClusterOptions | None = None) -> RunResult:
    """Train to the end. Ctrl-C is the caller's, through `watch.stoppable`."""
    return asyncio.run(Cluster(job, job_id, options).run(watch))

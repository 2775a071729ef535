"""The one role that runs on this instance: the same process as on one machine, started through the same pipe."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import msgspec

from common.role_start import AddressBook, FunctionPlace, RoleStart
from common.wire.keys import KeyPair
from local_cloud.cluster import WITH_FUNCTIONS
from local_cloud.lambda_process import concurrency_of_each
from local_cloud.on_instance.job_record import JobRecord
from local_cloud.on_instance.metadata import Instance
from local_cloud.on_instance.settings import Settings
from local_cloud.on_instance.team import Team
from local_cloud.prepare import PreparedJob
from local_cloud.roles import RoleProcess


@dataclass(frozen=True)
class Keys:
    """server: of all listeners of the job; shown, launcher: of this instance's role and of who follows the job."""

    server: KeyPair
    shown: KeyPair
    launcher: KeyPair


@dataclass(frozen=True)
class Post:
    """Where and as what this instance stands."""

    settings: Settings
    instance: Instance
    record: JobRecord
    name: str
    keys: Keys

    @property
    def scratch(self) -> Path:
        folder = self.settings.work / "role"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def log(self) -> Path:
        return self.scratch / f"{self.name}.log"

    @property
    def trace(self) -> Path:
        return self.scratch / f"{self.name}.trace"

    @property
    def checkpoints(self) -> str:
        return f"{self.record.text('output')}checkpoints"

    @property
    def is_graph(self) -> bool:
        return self.name.startswith("graph")

    @property
    def graph_server(self) -> int | None:
        """Its number."""
        return int(self.name.removeprefix("graph")) if self.is_graph else None


class OwnRole:
    """`process`: once it listens; end it, whatever happens."""

    def __init__(self, post: Post, team: Team, job: PreparedJob) -> None:
        self._post, self._team, self._job = post, team, job
        self.process: RoleProcess | None = None

    async def start(self) -> AddressBook:
        """Where all roles of the generation listen. Raises PeerLost if one of them is lost before."""
        post, team = self._post, self._team
        start = self._role_start(team.proofs(await team.everybody()))
        if not post.is_graph:
            start = msgspec.structs.replace(start, resume=await team.checkpoint())
        self.process = RoleProcess(start, post.log)
        address = await self.process.launch()
        port = int(address.endpoint.rpartition(":")[2])
        news: dict[str, str | int | bool] = {"address": post.instance.address, "port": port}
        await asyncio.to_thread(team.members.tell, post.name, news)
        book = await team.addresses(post.keys.server.public)
        await self.process.introduce(book)
        return book

    async def end(self) -> None:
        if self.process is not None:
            await self.process.end()

    def _role_start(self, admitted: dict[str, str]) -> RoleStart:
        post, spec = self._post, self._job.spec
        return RoleStart(
            job_id=post.instance.job_id,
            generation=post.instance.generation,
            name=post.name,
            spec=json.dumps(spec.model_dump(mode="json", exclude_unset=True)),
            facts=self._job.facts,
            graph_folder=str(self._job.folder.path.resolve()),
            endpoint=f"tcp://{post.instance.address}:{post.settings.port or '*'}",
            server_keys=post.keys.server,
            credentials=post.keys.shown,
            admitted=admitted,
            num_graph_servers=spec.cluster.num_graph_servers,
            num_parameter_servers=spec.cluster.num_parameter_servers,
            scratch=str(post.scratch),
            trace_path=str(post.trace) if post.is_graph else None,
            functions=self._functions() if post.is_graph else None,
            checkpoints=None if post.is_graph else post.checkpoints,
        )

    def _functions(self) -> FunctionPlace | None:
        post, spec = self._post, self._job.spec
        if spec.backend.name not in WITH_FUNCTIONS:
            return None
        share = concurrency_of_each(spec.backend.max_lambdas, spec.cluster.num_graph_servers)
        settings = post.settings
        return FunctionPlace(
            post.record.text("function"), settings.region, settings.lambda_endpoint, share, spec.backend.memory_mb
        )


def role_names(record: JobRecord) -> list[str]:
    """The leader first: an instance takes the first role that is free."""
    parameter = [f"parameter{n}" for n in range(record.number("num_parameter_servers"))]
    return parameter + [f"graph{n}" for n in range(record.number("num_graph_servers"))]

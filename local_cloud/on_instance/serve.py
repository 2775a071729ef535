"""Every server but the leader: its role runs until the leader says that the job is done; its trace is handed in."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec

from common.cloud_names import run_key
from common.errors import ClusterError, DorylusError, PeerLost
from common.role_start import Ended
from local_cloud.on_instance.aws import Plain
from local_cloud.on_instance.bucket import Bucket
from local_cloud.on_instance.log_lines import forward
from local_cloud.on_instance.own_role import OwnRole, Post
from local_cloud.on_instance.task import Task
from local_cloud.on_instance.team import Team
from local_cloud.prepare import PreparedJob

LOG = logging.getLogger(__name__)


def trace_key(post: Post, name: str) -> str:
    return run_key(post.instance.job_id, f"traces/{post.instance.generation:04d}-{name}.jsonl")


class Server:
    def __init__(self, post: Post, team: Team, task: Task, bucket: Bucket) -> None:
        self._post, self._team, self._task, self._bucket = post, team, task, bucket

    async def run(self, prepare: Callable[[], PreparedJob]) -> None:
        """Raises what its role ended with. The leader is told of it, and the state machine if the leader is lost."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._leave_soon)
        try:
            await self._serve(await asyncio.to_thread(prepare))
        except Exception as error:
            await asyncio.to_thread(self._hand_in, {"ended": _last_words(self._post.name, error)})
            await self._see_that_it_is_heard()
            raise
        await asyncio.to_thread(self._hand_in, {"done": True})

    async def _serve(self, job: PreparedJob) -> None:
        role = OwnRole(self._post, self._team, job)
        try:
            await role.start()
            assert role.process is not None
            await self._until_done(role.process.watch())
        finally:
            await role.end()
            forward(self._post.log, self._post.name)

    async def _until_done(self, watch: Coroutine[Any, Any, None]) -> None:
        """Raises the role's error, or PeerLost of the leader."""
        watching = asyncio.create_task(watch)
        done = asyncio.create_task(self._team.until_done())
        try:
            await asyncio.wait({watching, done}, return_when=asyncio.FIRST_COMPLETED)
            if done.done():
                return done.result()
            watching.result()
            raise ClusterError(f"{self._post.name} ended before the job", fix="start the job again")
        finally:
            watching.cancel()
            done.cancel()
            await asyncio.gather(watching, done, return_exceptions=True)

    async def _see_that_it_is_heard(self) -> None:
        """The leader hears of it and ends the generation, unless it is gone itself."""
        try:
            await self._team.until_done()
        except PeerLost as lost:
            await asyncio.to_thread(self._task.failed, type(lost).__name__, str(lost))

    def _hand_in(self, news: Mapping[str, Plain]) -> None:
        """The trace first: who has told is not waited for any more."""
        if self._post.trace.exists():
            self._bucket.send(self._post.trace, trace_key(self._post, self._post.name))
        self._team.members.tell(self._post.name, {**news, **self._bucket.requests})

    def _leave_soon(self) -> None:
        """EC2 wants the instance back. The leader has a checkpoint written, and ends the generation."""
        LOG.warning("%s will be taken away", self._post.name)
        asyncio.get_running_loop().run_in_executor(None, self._team.members.tell, self._post.name, {"leaving": True})


def _last_words(name: str, error: Exception) -> str:
    kind = type(error).__name__
    if isinstance(error, DorylusError):
        ended = Ended(error.what, error.why, error.fix, kind)
    else:
        ended = Ended(f"{name} failed with {kind}: {error}", kind=kind)
    return msgspec.json.encode(ended).decode()

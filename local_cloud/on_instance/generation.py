"""One generation of a job as its leader runs it: the team comes together, the job is followed, traces are handed in."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from common.wire.identity import Identity
from common.wire.zmq_channel import Dialer
from local_cloud.cluster import replay
from local_cloud.endings import until_the_end
from local_cloud.follower import Follower
from local_cloud.generations import Origin
from local_cloud.in_process import LAUNCHER
from local_cloud.on_instance.bucket import Bucket
from local_cloud.on_instance.log_lines import forward
from local_cloud.on_instance.own_role import OwnRole, Post
from local_cloud.on_instance.serve import trace_key
from local_cloud.on_instance.team import LOOK_SECONDS, Team
from local_cloud.prepare import PreparedJob
from local_cloud.run_result import RunResult, Totals, Watch

CAUSE_SECONDS = 5 * LOOK_SECONDS
HAND_IN_SECONDS = 60.0


class Generation:
    """`leaves`: is told of a server that will be taken away."""

    def __init__(self, post: Post, team: Team, job: PreparedJob, origin: Origin) -> None:
        self._post, self._team, self._job, self._origin = post, team, job, origin
        self._others = Totals()

    def train(self, watch: Watch, *, bucket: Bucket, leaves: Callable[[str], None]) -> RunResult:
        """With the other servers' requests to S3. Raises the first error of a role, or PeerLost if one had no last
        words."""
        result = asyncio.run(self._run(watch, bucket, leaves))
        return replace(result, totals=result.totals + self._others)

    async def _run(self, watch: Watch, bucket: Bucket, leaves: Callable[[str], None]) -> RunResult:
        role = OwnRole(self._post, self._team, self._job)
        try:
            return await self._follow(role, watch, leaves)
        finally:
            await asyncio.to_thread(self._team.members.tell, self._post.name, {"done": True})
            await self._team.until_handed_in(HAND_IN_SECONDS)
            self._others = sum((Totals(row.requests) for row in (await self._team.rows()).values()), Totals())
            await asyncio.to_thread(self._take_traces, watch, bucket)
            await role.end()
            forward(self._post.log, self._post.name)

    async def _follow(self, role: OwnRole, watch: Watch, leaves: Callable[[str], None]) -> RunResult:
        news: dict[str, str | int | bool] = {"checkpoint": self._origin.checkpoint or ""}
        await asyncio.to_thread(self._team.members.tell, self._post.name, news)
        book = await role.start()
        assert role.process is not None
        me = Identity(self._post.instance.job_id, self._post.instance.generation, LAUNCHER)
        async with AsyncExitStack() as stack:
            dialer = Dialer(me, book.addresses, credentials=self._post.keys.launcher)
            channel = await stack.enter_async_context(dialer)
            follower = Follower(self._job, channel, watch, None, self._origin)
            watching = [role.process.watch(), self._team.watch(leaves)]
            return await until_the_end(follower, watching, cause_seconds=CAUSE_SECONDS)

    def _take_traces(self, watch: Watch, bucket: Bucket) -> None:
        for number in range(self._job.spec.cluster.num_graph_servers):
            name = f"graph{number}"
            if (data := bucket.read(trace_key(self._post, name))) is not None:
                path = self._post.scratch / f"{name}.trace"
                path.write_bytes(data)
                replay(path, watch, self._post.instance.generation)

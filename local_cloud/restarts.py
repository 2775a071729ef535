"""A job as generations of processes: what a lost role ends is started again from the last checkpoint.

generation 1 ── a role is lost ──▶ all its processes end ──▶ the newest checkpoint ──▶ generation 2 ── ...
"""

import asyncio
from dataclasses import replace

from common.wire.channel import Traffic
from local_cloud.cluster import Cluster, ClusterOptions
from local_cloud.generations import Generations, Loss, Origin
from local_cloud.prepare import PreparedJob
from local_cloud.run_result import Load, RunResult, Totals, Watch
from parameter_server.checkpoint import CheckpointFolder


class Restarts:
    """One job; `origin`: where its first generation starts. `run` may be called once."""

    def __init__(self, job: PreparedJob, job_id: str, options: ClusterOptions, origin: Origin | None = None) -> None:
        self._job, self._job_id, self._options = job, job_id, options
        self._origin = origin or Origin()
        cluster = job.spec.cluster
        self._generations = Generations(
            max_restarts=cluster.max_restarts,
            num_graph_servers=cluster.num_graph_servers,
            first=self._origin.generation,
        )
        self._traffic, self._totals = Traffic(), Totals()
        self._left: RunResult | None = None

    async def run(self, watch: Watch) -> RunResult:
        """Raises what ends the job: an error of its own, or one loss too many."""
        told = replace(watch, cut_short=self._keep, load=lambda load: watch.load(self._with_earlier(load)))
        while True:
            cluster = Cluster(self._job, self._job_id, self._options, self._origin)
            try:
                result = await cluster.run(told)
                return result.after(self._traffic, self._totals)
            except BaseException as error:
                self._count(cluster)
                try:
                    await self._go_on_after(error, cluster, watch)
                except BaseException:
                    self._tell_what_is_left(watch)
                    raise

    async def _go_on_after(self, error: BaseException, cluster: Cluster, watch: Watch) -> None:
        """Raises if there is no next generation."""
        ended = self._origin.epoch if cluster.follower is None else cluster.follower.last_epoch
        loss = self._generations.lost(error, ended)
        self._origin = await self._newest(watch)
        self._left = None
        watch.rewound(self._origin.epoch)
        watch.note(self._said(loss))
        self._job = _dealt(self._job, self._generations.num_graph_servers)

    async def _newest(self, watch: Watch) -> Origin:
        """Raises CheckpointError if there are only damaged ones."""
        generation = self._generations.generation
        if self._options.checkpoints is None:
            return Origin(generation)
        folder = CheckpointFolder(self._options.checkpoints, endpoint_url=self._options.s3_endpoint)
        found = await asyncio.to_thread(folder.newest, watch.note)
        if found is None:
            return Origin(generation)
        await asyncio.to_thread(folder.remove_after, found.epoch)
        return Origin(generation, found.epoch, found.clock.version, found.url)

    def _said(self, loss: Loss) -> str:
        place = f"after epoch {self._origin.epoch}" if self._origin.epoch else "from the beginning"
        num = self._generations.num_graph_servers
        fewer = f", with {num} graph servers" if num < self._job.spec.cluster.num_graph_servers else ""
        return f"{loss.error.what}; restart {self._generations.restarts} goes on {place}{fewer}"

    # ---- what is counted over all generations

    def _count(self, cluster: Cluster) -> None:
        if (follower := cluster.follower) is not None:
            self._traffic.payload.update(follower.traffic.payload)
            self._traffic.overhead.update(follower.traffic.overhead)
            self._totals = self._totals + follower.totals

    def _with_earlier(self, load: Load) -> Load:
        return replace(load, totals=self._totals + load.totals)

    def _keep(self, result: RunResult) -> None:
        self._left = result

    def _tell_what_is_left(self, watch: Watch) -> None:
        if self._left is not None:
            watch.cut_short(replace(self._left, traffic=self._traffic, totals=self._totals))


def _dealt(job: PreparedJob, num_graph_servers: int) -> PreparedJob:
    """The same job on so many graph servers: intervals are dealt again, never cut again."""
    if num_graph_servers == job.spec.cluster.num_graph_servers:
        return job
    cluster = job.spec.cluster.model_copy(update={"num_graph_servers": num_graph_servers})
    return replace(job, spec=job.spec.model_copy(update={"cluster": cluster}))


def run_job(
    job: PreparedJob, job_id: str, watch: Watch, options: ClusterOptions, origin: Origin | None = None
) -> RunResult:
    """Train to the end, over as many generations as it takes. Ctrl-C is the caller's, through `watch.stoppable`."""
    return asyncio.run(Restarts(job, job_id, options, origin).run(watch))

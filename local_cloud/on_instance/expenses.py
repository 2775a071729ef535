"""What a job in the cloud has cost before this generation, and how much time and money it still has."""

import time
from collections.abc import Mapping

import msgspec

from common.pricing import prices_of
from common.s3_requests import S3_READS, S3_WRITES
from local_cloud import run_folder
from local_cloud.costs import Site, cost_of
from local_cloud.observer import Observer
from local_cloud.on_instance.job_record import JobRecord
from local_cloud.on_instance.own_role import Post
from local_cloud.on_instance.settings import Settings
from local_cloud.prepare import PreparedJob
from local_cloud.recorded_run import Run
from local_cloud.resume import earlier
from local_cloud.run_folder import RunFolder
from local_cloud.run_result import Totals
from local_cloud.spending import Spending
from local_cloud.summary import Summary, bytes_moved, with_earlier

LAST_SECONDS = 15.0
"""Of the job's time: to hand in, to upload, and to say so while the state machine still listens."""
TEARDOWN_SECONDS = 60.0
"""An instance is billed from its launch until it is terminated: after the summary is written comes its upload, then the
state machine's last steps. An assumption on the safe side, for no account has shown how long these take."""
LAST_WRITES = 100
"""To S3, at the end: a checkpoint, traces, results. A multiple of what they take, and still next to nothing."""


def launched(post: Post) -> float:
    """time.monotonic() of the instances' launch: from then on they are billed."""
    return time.monotonic() - max(0.0, time.time() - post.instance.launched)


def site_of(job: PreparedJob, post: Post) -> Site:
    """Of its bucket, the graph folder is counted: what is left there of a run is small, and is billed for longer."""
    is_bundled = not post.record.text("dataset").startswith("s3://")
    stored_bytes = 0 if is_bundled else sum(file.bytes for file in job.folder.manifest.files.values())
    return _site(post.settings, stored_bytes)


def _site(settings: Settings, stored_bytes: int = 0) -> Site:
    return Site(
        region=prices_of(settings.region).region,
        functions=settings.functions,
        disk_gb=settings.disk_gb,
        endpoints=settings.endpoints,
        stored_bytes=stored_bytes,
        teardown_seconds=TEARDOWN_SECONDS,
        last_writes=LAST_WRITES,
    )


def cut_usd(settings: Settings, record: JobRecord, seconds: float, requests: Mapping[str, int]) -> float:
    """What the cutter has cost, if it ends now. `seconds`: since its launch."""
    servers = {"cutter": [seconds + TEARDOWN_SECONDS]}
    return cost_of(servers, Totals(requests), _site(settings), instance_type=record.text("launched_type")).usd


def spent_before(job: PreparedJob, folder: RunFolder, post: Post, site: Site) -> Summary:
    """By the cutter and by earlier generations: as the last one that could say so has summed it up, or as its epochs
    tell."""
    restarts, cut = post.instance.generation - 1, _cut(job, post, site)
    if (folder.path / run_folder.SUMMARY).is_file():
        found = earlier(folder, job, post.instance.job_id)
    else:
        found = with_earlier(earlier(folder, job, post.instance.job_id, site), cut) if restarts else cut
    return msgspec.structs.replace(found, restarts=restarts)


def spending_of(run: Run, post: Post, observer: Observer) -> Spending:
    """The budget's time ends at the job's deadline, boots and earlier generations included."""
    spent = run.earlier.seconds if run.earlier is not None else 0.0
    left = post.record.number("deadline") - LAST_SECONDS - post.instance.launched
    spec = run.job.spec
    budget = spec.budget.model_copy(update={"max_runtime_seconds": max(1, int(spent + left))})
    return Spending(
        spec.model_copy(update={"budget": budget}),
        observer,
        began=launched(post),
        earlier=run.earlier,
        concurrency=spec.backend.max_lambdas,
        site=site_of(run.job, post),
    )


def _cut(job: PreparedJob, post: Post, site: Site) -> Summary:
    """Of one instance, on demand, from its launch to its end; nothing if the graph folder was there."""
    seconds = post.record.number("cut_seconds")
    servers = {"cutter": [seconds + TEARDOWN_SECONDS] if seconds else []}
    requests = Totals({name: post.record.number(f"cut_{name}") for name in (S3_READS, S3_WRITES)})
    cost = cost_of(servers, requests, site, instance_type=job.spec.cluster.instance_type)
    return Summary(
        job_id=post.instance.job_id,
        run_dir="",
        state="Stopped",
        seconds=seconds,
        cut_sha256=job.folder.manifest.cut.cut_sha256,
        bytes_moved=bytes_moved(None),
        cost_usd=cost.usd,
        bill=cost.items,
    )

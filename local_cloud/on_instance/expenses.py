"""What a job in the cloud has cost before this generation, and how much time and money it still has."""

import time

import msgspec

from common.pricing import Usage, price
from local_cloud import run_folder
from local_cloud.observer import Observer
from local_cloud.on_instance.own_role import Post
from local_cloud.prepare import PreparedJob
from local_cloud.recorded_run import Run
from local_cloud.resume import earlier
from local_cloud.run_folder import RunFolder
from local_cloud.spending import Spending
from local_cloud.summary import Summary, bytes_moved, with_earlier

LAST_SECONDS = 15.0
"""Of the job's time: to hand in, to upload, and to say so while the state machine still listens."""
TEARDOWN_SECONDS = 60.0
"""An instance is billed from its launch until it is terminated: after the summary is written comes its upload, then the
state machine's last steps. An assumption on the safe side, for no account has shown how long these take."""


def launched(post: Post) -> float:
    """time.monotonic() of the instances' launch: from then on they are billed."""
    return time.monotonic() - max(0.0, time.time() - post.instance.launched)


def spent_before(job: PreparedJob, folder: RunFolder, post: Post) -> Summary:
    """By the cutter and by earlier generations: as the last one that could say so has summed it up, or as its epochs
    tell."""
    restarts, cut = post.instance.generation - 1, _cut(job, post)
    if (folder.path / run_folder.SUMMARY).is_file():
        found = earlier(folder, job, post.instance.job_id)
    else:
        found = with_earlier(earlier(folder, job, post.instance.job_id), cut) if restarts else cut
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
        teardown_seconds=TEARDOWN_SECONDS,
    )


def _cut(job: PreparedJob, post: Post) -> Summary:
    """Of one instance, on demand, from its launch to its end; nothing if the graph folder was there."""
    seconds = post.record.number("cut_seconds")
    usage = Usage({"cutter": [seconds + TEARDOWN_SECONDS] if seconds else []})
    cost = price(usage, instance_type=job.spec.cluster.instance_type)
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

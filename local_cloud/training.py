"""Train one job on this machine, from a resolved spec to a run folder.

    claim the run folder -> read and cut -> train -> weights, predictions -> summary
    or, resumed: take it again -> the newest checkpoint -> read and cut -> train on -> ...

Whatever ends the training, the run folder then holds what there is, and its summary says how it ended. An error that is
found before training starts leaves no run folder behind.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from common.pricing import instance_hour
from common.resolve_spec import ResolvedSpec, dump
from graph_server.ingest.detect import bundled_names, is_bundled_name
from graph_server.ingest.memory import available_memory_bytes
from local_cloud import run_folder
from local_cloud.cluster import ClusterOptions
from local_cloud.generations import Origin
from local_cloud.in_process import Saving, run_in_process
from local_cloud.observer import Observer
from local_cloud.plan.memory_check import refuse_what_does_not_fit
from local_cloud.prepare import PreparedJob, prepare_job
from local_cloud.recorded_run import RecordedRun, Run
from local_cloud.restarts import run_job
from local_cloud.resume import earlier, newest_checkpoint, origin_of, refuse_completed
from local_cloud.run_folder import RunFolder, new_job_id
from local_cloud.run_result import RunResult, Watch
from local_cloud.spending import Spending
from local_cloud.summary import Summary
from parameter_server.assemble import clock_settings
from parameter_server.checkpoint import CheckpointFolder


@dataclass(frozen=True)
class RunOptions:
    """base_folder: where relative paths start. run_dir: the run folder itself; None: a new one under output.path.
    in_process: all roles in this process; secure: CURVE over TCP between them instead of ipc. resume: go on with the
    run in run_dir. checkpoints: URL of their folder; None: in the run folder; s3_endpoint: of another S3 than AWS's.
    ignore_memory: start even if this machine has too little."""

    base_folder: Path
    cache_dir: Path
    run_dir: Path | None = None
    in_process: bool = False
    secure: bool = False
    resume: bool = False
    checkpoints: str | None = None
    s3_endpoint: str | None = None
    ignore_memory: bool = False


def train_job(resolved: ResolvedSpec, options: RunOptions, observer: Observer) -> Summary:
    """The first Ctrl-C or SIGTERM ends the job after the epoch, the second at once; both end in a summary that says
    Stopped.

    Raises SpecError for the run folder, whatever is wrong with job or dataset, CheckpointError if there is nothing to
    resume from, and the error of a role; after the latter there is a run folder, too, whose summary says Failed.
    """
    began = time.monotonic()
    for note in resolved.notes:
        observer.note(note)
    job_id = new_job_id(resolved.spec.name)
    path = _run_dir(resolved, options, job_id)
    folder = RunFolder.reopen(path) if options.resume else RunFolder.claim(path)
    try:
        if options.resume:
            refuse_completed(folder)
        run = _run(_prepare(resolved, options, observer), job_id, folder, options, observer)
        spending = Spending(run.job.spec, observer, began=began, earlier=run.earlier)
        spending.check_start()
    except BaseException:
        folder.discard()
        raise
    with folder:
        if not options.resume or _is_changed(resolved):
            folder.write_text(run_folder.SPEC, dump(with_absolute_path(resolved, options.base_folder)))
        if options.resume:
            _checkpoints(folder, options).remove_after(run.origin.epoch)
        observer.training_starts(run.job_id, str(folder.path), resolved.spec.training.num_epochs)
        return RecordedRun(run, observer, spending, began=began).run()


def _prepare(resolved: ResolvedSpec, options: RunOptions, observer: Observer) -> PreparedJob:
    job = prepare_job(resolved.spec, base_folder=options.base_folder, cache_dir=options.cache_dir, observer=observer)
    clock_settings(job.spec, job.facts)
    instance_hour(job.spec.cluster.instance_type)
    if not options.ignore_memory:
        refuse_what_does_not_fit(job, available_memory_bytes())
    return job


def _run(job: PreparedJob, job_id: str, folder: RunFolder, options: RunOptions, observer: Observer) -> Run:
    """If it is resumed: where it goes on, as the run that it is."""
    if not options.resume:
        return Run(job, job_id, folder, _trainer(job, job_id, folder, options, Origin(), observer))
    checkpoint = newest_checkpoint(_checkpoints(folder, options), folder, observer)
    origin, job_id = origin_of(checkpoint, job), checkpoint.job.job_id
    observer.note(f"going on after epoch {origin.epoch}")
    train = _trainer(job, job_id, folder, options, origin, observer)
    return Run(job, job_id, folder, train, origin, earlier(folder, job, job_id))


def _trainer(
    job: PreparedJob, job_id: str, folder: RunFolder, options: RunOptions, origin: Origin, observer: Observer
) -> Callable[[Watch], RunResult]:
    checkpoints = _checkpoints(folder, options).url

    def train(watch: Watch) -> RunResult:
        if options.in_process:
            return run_in_process(job, watch, saving=Saving(checkpoints, job_id, origin))
        observer.doing("starting the roles")
        cluster = ClusterOptions(secure=options.secure, checkpoints=checkpoints, s3_endpoint=options.s3_endpoint)
        return run_job(job, job_id, watch, cluster, origin)

    return train


def _checkpoints(folder: RunFolder, options: RunOptions) -> CheckpointFolder:
    return CheckpointFolder(options.checkpoints or folder.checkpoints, endpoint_url=options.s3_endpoint)


def _is_changed(resolved: ResolvedSpec) -> bool:
    """A flag has changed what the run folder's spec says."""
    return any(source.startswith("--") for source in resolved.sources.values())


def with_absolute_path(resolved: ResolvedSpec, base_folder: Path) -> ResolvedSpec:
    """The same job from any folder: the dataset's path no longer depends on where the command ran."""
    path = resolved.spec.dataset.path
    if "://" in path or (is_bundled_name(path) and path in bundled_names()):
        return resolved
    absolute = os.path.abspath(base_folder / Path(path).expanduser())
    dataset = resolved.spec.dataset.model_copy(update={"path": absolute})
    spec = resolved.spec.model_copy(update={"dataset": dataset})
    return ResolvedSpec(spec, resolved.sources, resolved.notes, resolved.given)


def _run_dir(resolved: ResolvedSpec, options: RunOptions, job_id: str) -> Path:
    if options.run_dir is not None:
        return options.base_folder / options.run_dir.expanduser()
    return options.base_folder / Path(resolved.spec.output.path).expanduser() / job_id

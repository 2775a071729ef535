"""To go on with a run: its own spec, with what may be given anew; then its newest checkpoint, if it is this job's.

A run that was killed can be resumed like one that was stopped. One that is Completed has nothing left to do.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from common.errors import CheckpointError, SpecError
from common.resolve_spec import Layer, ResolvedSpec
from local_cloud import run_folder
from local_cloud.costs import HERE, Site, run_cost
from local_cloud.generations import Origin
from local_cloud.load_job import load_job
from local_cloud.observer import EpochReport, Observer
from local_cloud.prepare import PreparedJob
from local_cloud.run_folder import RunFolder, read_lines
from local_cloud.run_result import Totals
from local_cloud.summary import Summary, bytes_moved
from parameter_server.checkpoint import Checkpoint, CheckpointFolder
from parameter_server.same_job import MAY_CHANGE

ANEW = ("cluster", "backend", "budget", "output")
"""Groups whose keys change no bit of the result."""


def load_run(run_dir: Path, flags: Layer, base_folder: Path) -> ResolvedSpec:
    """The spec in the run folder, with flags on top. Raises SpecError if there is none, or a flag may not be given."""
    refused = [_refusal(key, flags) for key in _keys(flags.values) if not _may_be_given(key)]
    if refused:
        raise refused[0]
    spec = base_folder / run_dir / run_folder.SPEC
    if not spec.is_file():
        raise SpecError(
            f"{run_dir} is not a run folder",
            why=f"it has no {run_folder.SPEC}",
            fix="name the folder that a run has left, such as runs/<job_id>",
        )
    return load_job(str(spec), flags, base_folder)


def _keys(values: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _keys(value, f"{prefix}{name}.")
        else:
            yield prefix + name


def _may_be_given(key: str) -> bool:
    at_all = key.partition(".")[0] in ANEW or key in MAY_CHANGE
    return at_all and key not in ("output.path", "dataset.path")


def _refusal(key: str, flags: Layer) -> SpecError:
    why = "it decides what is computed, and the checkpoint was computed otherwise"
    if key in ("output.path", "name"):
        why = "a resumed run stays in its folder, under its name"
    return SpecError(
        f"{key} ({flags.where(key)}) cannot be changed when a run is resumed",
        why=why,
        fix=f"remove {flags.where(key)}, or start a new run",
    )


# ---- the checkpoint


def refuse_completed(folder: RunFolder) -> None:
    summary = _summary(folder)
    if summary is not None and summary.state == "Completed":
        raise SpecError(
            f"the run in {folder.path} is Completed",
            why=f"all it was to do is done, after epoch {summary.epochs}",
            fix="start a new run with more epochs",
        )


def newest_checkpoint(checkpoints: CheckpointFolder, folder: RunFolder, observer: Observer) -> Checkpoint:
    """Raises CheckpointError if there is none, or only damaged ones."""
    found = checkpoints.newest(observer.note)
    if found is None:
        raise CheckpointError(
            f"there is no checkpoint in {checkpoints.url}",
            why="the run ended before its first one (output.save_model_frequency, output.checkpoint_seconds)",
            fix=f"start again: dorylus train {folder.path / run_folder.SPEC}",
        )
    return found


def origin_of(checkpoint: Checkpoint, job: PreparedJob) -> Origin:
    """Raises CheckpointError if it is another job's, SpecError if the job was to end before it."""
    checkpoint.check_job(job.spec, job.facts)
    if job.spec.training.num_epochs < checkpoint.epoch:
        raise SpecError(
            f"training.num_epochs = {job.spec.training.num_epochs}",
            why=f"the run has a checkpoint of epoch {checkpoint.epoch} already",
            fix=f"give at least {checkpoint.epoch}",
        )
    generation = checkpoint.job.generation + 1
    return Origin(generation, checkpoint.epoch, checkpoint.clock.version, checkpoint.url)


# ---- what the run took before


def earlier(folder: RunFolder, job: PreparedJob, job_id: str, site: Site = HERE) -> Summary:
    """Its summary; of a run that was killed what its epochs tell."""
    if (summary := _summary(folder)) is not None:
        return summary
    reports = read_lines(folder.path / run_folder.METRICS, EpochReport)
    seconds = sum(report.seconds for report in reports)
    cost = run_cost(job.spec, Totals(), seconds, site)
    return Summary(
        job_id=job_id,
        run_dir=str(folder.path),
        state="Failed",
        seconds=seconds,
        cut_sha256=job.folder.manifest.cut.cut_sha256,
        bytes_moved=bytes_moved(None),
        cost_usd=cost.usd,
        bill=cost.items,
    )


def _summary(folder: RunFolder) -> Summary | None:
    """None if the run was killed before it wrote one, or another version of Dorylus wrote it."""
    try:
        return msgspec.json.decode((folder.path / run_folder.SUMMARY).read_bytes(), type=Summary)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None

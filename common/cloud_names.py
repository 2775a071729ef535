"""What all who meet in the cloud call the same things: prefixes of the bucket, tags, tables' items, states of a job.

The bucket   datasets/   jobs/<name>.yaml|json   runs/<job_id>/   graphs/<cut key>/
The tables   jobs: id;   members: job_id, member
"""

from enum import StrEnum
from typing import Final

DATASETS: Final = "datasets/"
JOBS: Final = "jobs/"
RUNS: Final = "runs/"
GRAPHS: Final = "graphs/"

STATUS: Final = "status.json"
"""In a run's folder: what became of the job, in words."""
STOP: Final = "STOP"
"""An object of this name in a run's folder ends the job at its next pause."""
MANIFEST: Final = "manifest.json"
"""Of a graph folder: it is written last, so where it is the folder is whole."""
DEFAULTS: Final = "defaults.json"
"""Beside the manifest, and in no manifest: the layers below the spec."""

STACK_TAG: Final = "dorylus-stack"
JOB_TAG: Final = "dorylus-job"
GENERATION_TAG: Final = "dorylus-generation"
PHASE_TAG: Final = "dorylus-phase"

SERVER_PORT: Final = 7077
"""Where every server of a job listens: one role is alone on its instance."""

ACTIVE_JOBS: Final = "active"
"""Id of the one item of the jobs table that holds the set of the jobs that are not over."""


class Phase(StrEnum):
    """What a fleet is for."""

    CUT = "cut"
    TRAIN = "train"


class JobState(StrEnum):
    PENDING = "Pending"
    STARTING = "Starting"
    TRAINING = "Training"
    STOPPING = "Stopping"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPED = "Stopped"

    @property
    def is_final(self) -> bool:
        return self in {JobState.COMPLETED, JobState.FAILED, JobState.STOPPED}


def run_key(job_id: str, name: str = "") -> str:
    """Key of a file of the job's run folder."""
    return f"{RUNS}{job_id}/{name}"


def key_parameter(stack: str, job_id: str) -> str:
    """Name of the SSM parameter that holds the job's server keys while it runs."""
    return f"/{stack}/jobs/{job_id}/keys"


def execution_name(job_id: str) -> str:
    """Of the job's state machine execution: at most 80 characters."""
    return job_id[-80:]


def member_key(generation: int, name: str) -> str:
    """Sort key of a server's row: generations sort apart, the newest last."""
    return f"{generation:04d}#{name}"

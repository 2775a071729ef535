"""A step of the job's state machine: the fleet of a phase, all of it or an error in AWS's words.

cut     one server, and only if the graph folder is not there yet
train   every server of the job: the first generation, or the next one after a loss, until max_restarts is reached

The errors' names are what the state machine catches by.
"""

import logging
import os
import time
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.exceptions import ClientError

from common.cloud_names import MANIFEST, JobState, Phase
from common.errors import ClusterError
from common.pricing import architecture_of
from lambda_functions.fleet import Attempt, Launched, Wanted, fleet_request, launched
from lambda_functions.instances import fleet_name, terminate, terminate_job
from lambda_functions.job_table import JobTable
from lambda_functions.run_status import object_exists
from lambda_functions.stack_settings import StackSettings
from lambda_functions.step_errors import in_words

LOG = logging.getLogger(__name__)
BEAT_SECONDS = 600
"""As the dead-man's switch of the instances counts."""
LEAST_SECONDS = 60
"""No server is worth launching for less."""


class StopRequested(ClusterError):
    """Somebody stopped the job before its servers were there."""


class NoCapacity(ClusterError):
    """No zone has the servers."""


class TooManyRestarts(ClusterError):
    """Servers were lost more often than the spec allows."""


class TimeIsUp(ClusterError):
    """The job's time is over."""


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """{job_id, phase, generation, lost?} -> {needed, generation, seconds, heartbeat}

    seconds     that the job may still run
    heartbeat   seconds without a beat after which its servers count as lost
    """
    stack = StackSettings.read(os.environ)
    jobs = JobTable(stack.jobs_table)
    record, phase = jobs.get(event["job_id"]), Phase(event["phase"])
    seconds = _seconds_left(record)
    # A heartbeat has to be shorter than the time-out it stands beside.
    times = {"seconds": seconds, "heartbeat": min(BEAT_SECONDS, seconds - 1)}
    if record.get("stop"):
        raise StopRequested(f"job {record['id']} was stopped before its servers were there")
    if phase is Phase.CUT and _is_cut(stack, record):
        return {"needed": False, "generation": event["generation"], **times}
    generation = int(event["generation"]) + (phase is Phase.TRAIN)
    _check_restarts(record, generation, event.get("lost") or {})
    # Not those of this fleet: this step may be tried again, and EC2 then answers as it did before.
    terminate_job(stack.stack, record["id"], except_fleet=fleet_name(phase, generation))
    attempt, servers = launch(_wanted(stack, record, phase, generation), _attempts(stack, record))
    if not jobs.set(record["id"], _changes(attempt, phase, generation), remove=("task_token", "boot_error")):
        terminate(servers.instances)
        raise StopRequested(f"job {record['id']} was over before its servers were there")
    return {"needed": True, "generation": generation, **times}


def launch(wanted: Wanted, attempts: list[Attempt]) -> tuple[Attempt, Launched]:
    """The first attempt that gives every server. Raises NoCapacity with what AWS said to each."""
    ec2, refusals = boto3.client("ec2"), []
    for attempt in attempts:
        try:
            answer = launched(ec2.create_fleet(**fleet_request(wanted, attempt)))
        except ClientError as error:
            answer = Launched((), (str(error),))
        if len(answer.instances) >= wanted.num_servers:
            return attempt, answer
        terminate(answer.instances)
        said = "; ".join(answer.refusals) or f"{len(answer.instances)} of {wanted.num_servers} servers"
        LOG.warning("%s: no fleet of %s: %s", wanted.job_id, attempt, said)
        refusals.append(f"{attempt}: {said}")
    raise NoCapacity(
        f"{wanted.num_servers} servers could not be had at once",
        why=" | ".join(refusals) or "no zone offers this instance type",
        fix="try again later, another instance_type, fewer servers, or raise the account's quota",
    )


def _wanted(stack: StackSettings, record: Mapping[str, Any], phase: Phase, generation: int) -> Wanted:
    is_cut = phase is Phase.CUT
    return Wanted(
        stack=stack.stack,
        job_id=record["id"],
        phase=phase,
        generation=generation,
        num_servers=1 if is_cut else int(record["num_servers"]),
        spot=bool(record["spot"]) and not is_cut,
    )


def _changes(attempt: Attempt, phase: Phase, generation: int) -> dict[str, Any]:
    """Of the job's record; the first beat is counted from here."""
    now = int(time.time())
    return {
        "state": JobState.STARTING.value,
        "generation": generation,
        "phase": phase.value,
        "zone": attempt.place.zone,
        "function": attempt.place.function,
        "launched_type": attempt.instance_type,
        "beat": now,
        "updated": now,
    }


def _attempts(stack: StackSettings, record: Mapping[str, Any]) -> list[Attempt]:
    zones = set(record["zones"])
    return [
        Attempt(place, instance_type, stack.templates[architecture_of(instance_type)])
        for instance_type in record["instance_types"]
        for place in stack.places
        if place.zone in zones
    ]


def _seconds_left(record: Mapping[str, Any]) -> int:
    left = int(record["deadline"]) - int(time.time())
    if left < LEAST_SECONDS:
        raise TimeIsUp(
            f"job {record['id']} has had its time",
            why=f"it may run {int(record['deadline']) - int(record['created'])} seconds",
            fix="raise budget.max_runtime_seconds, or give it more servers",
        )
    return left


def _check_restarts(record: Mapping[str, Any], generation: int, lost: Mapping[str, Any]) -> None:
    restarts = generation - 1
    if restarts > int(record["max_restarts"]):
        raise TooManyRestarts(
            f"job {record['id']} lost servers {restarts} time{'' if restarts == 1 else 's'}",
            why=f"{in_words(lost)}; max_restarts is {record['max_restarts']}",
            fix="its last checkpoint is in the run folder: resume from it, or look for the cause in its log",
        )


def _is_cut(stack: StackSettings, record: Mapping[str, Any]) -> bool:
    """A bundled dataset comes with the program, and a given graph folder is one already: they need no cutter."""
    graph = record["graph"]
    return not graph or object_exists(stack.bucket, f"{graph}{MANIFEST}")

"""A step of the job's state machine: what became of the job goes into its record and its run folder.

Its input is the state machine's whole document: `result`, what parameter server 0 said at the end, or `error`.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

import boto3

from common.cloud_names import JobState, run_key
from lambda_functions.job_table import JobTable
from lambda_functions.run_status import object_exists, write_status
from lambda_functions.stack_settings import StackSettings
from lambda_functions.step_errors import in_words

SUMMARY = "summary.json"


def handler(event: Mapping[str, Any], context: object) -> dict[str, str]:
    """-> {state, subject, message}: of the mail."""
    stack = StackSettings.read(os.environ)
    jobs = JobTable(stack.jobs_table)
    job_id = event["job_id"]
    record = jobs.get(job_id)
    summary = _summary(stack.bucket, job_id)
    state, reason = _outcome(event, record, summary)
    if not jobs.finish(job_id, state, reason):
        record = jobs.get(job_id)
        state, reason = JobState(record["state"]), record["failure_reason"]
    write_status(stack.bucket, job_id, state, reason)
    return {
        "state": state.value,
        "subject": f"{job_id} {state.value}"[-100:],
        "message": _message(stack.bucket, job_id, reason, summary),
    }


def _outcome(
    event: Mapping[str, Any], record: Mapping[str, Any], summary: Mapping[str, Any] | None
) -> tuple[JobState, str]:
    if error := event.get("error"):
        stopped = error.get("Error") == "StopRequested"
        said = in_words(error)
        if boot_error := record.get("boot_error"):
            said = f"{said}; a server did not come up: {boot_error}"
        return (JobState.STOPPED if stopped else JobState.FAILED), said
    result = event.get("result") or {}
    state = JobState(result.get("state", JobState.COMPLETED.value))
    if state is JobState.COMPLETED and summary is None:
        return JobState.FAILED, f"the job ended without a {SUMMARY} in its run folder"
    return state, str(result.get("reason", ""))


def _summary(bucket: str, job_id: str) -> dict[str, Any] | None:
    key = run_key(job_id, SUMMARY)
    if not object_exists(bucket, key):
        return None
    body = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    parsed: dict[str, Any] = json.loads(body)
    return parsed


def _message(bucket: str, job_id: str, reason: str, summary: Mapping[str, Any] | None) -> str:
    lines = [f"results  s3://{bucket}/{run_key(job_id)}"]
    if reason:
        lines.append(f"reason   {reason}")
    for key in ("test_accuracy", "valid_accuracy", "epochs", "seconds", "cost_usd"):
        if summary is not None and summary.get(key) is not None:
            lines.append(f"{key}  {summary[key]}")
    return "\n".join(lines)

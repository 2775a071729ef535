"""Somebody put runs/<job_id>/STOP into the bucket: the job's record says so, and parameter server 0 reads it there."""

import logging
import os
import time
from collections.abc import Mapping
from typing import Any

from common.cloud_names import RUNS, STOP, JobState
from lambda_functions.job_table import JobTable
from lambda_functions.stack_settings import StackSettings

LOG = logging.getLogger(__name__)


def handler(event: Mapping[str, Any], context: object) -> dict[str, bool]:
    """An EventBridge event of the bucket -> {stopping}: false if the job is over, or never was."""
    stack = StackSettings.read(os.environ)
    key = event["detail"]["object"]["key"]
    job_id, _, name = key.removeprefix(RUNS).partition("/")
    if name != STOP:
        LOG.warning("%s is no request to stop", key)
        return {"stopping": False}
    change = {"stop": True, "state": JobState.STOPPING.value, "updated": int(time.time())}
    return {"stopping": JobTable(stack.jobs_table).set(job_id, change)}

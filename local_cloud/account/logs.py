"""What a job's servers have logged, in the order of time. A line is JSON and names its job: servers of all jobs write
into one log group, each into a stream of its own.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from local_cloud.account.deployment import Deployment, NotThere, said_by


@dataclass(frozen=True)
class LogLine:
    """`role`: empty until the instance has one."""

    when: datetime
    role: str
    text: str


def job_logs(deployment: Deployment, job_id: str, *, since_ms: int = 0) -> Iterator[LogLine]:
    """Words only; lines of metrics are left out. Raises NotThere if there is no log group, or nobody may look."""
    found = (
        deployment.account.client("logs")
        .get_paginator("filter_log_events")
        .paginate(logGroupName=deployment.log_group, filterPattern=f'"{job_id}"', startTime=since_ms)
    )
    try:
        for event in (event for page in found for event in page["events"]):
            said = _said(event["message"])
            # Looked at here, too: a line of another job may speak of this one.
            if said.get("job_id") == job_id and "text" in said:
                yield LogLine(_when(event, said), str(said.get("role", "")), _words(said))
    except ClientError as error:
        raise NotThere(f"the logs of {job_id} cannot be read", why=said_by(error)) from None


def _said(line: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(line)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _when(event: Mapping[str, Any], said: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(float(said.get("time", event["timestamp"] / 1000)), UTC)


def _words(said: Mapping[str, Any]) -> str:
    return "\n".join(str(said[name]) for name in ("text", "traceback") if name in said)

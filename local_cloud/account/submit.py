"""Handing in a job: its spec is checked here, uploaded, and the job that the trigger makes of it is found again.

The job's id is not known before: it has the time of the upload in it, as S3 tells it to the trigger.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from common.cloud_names import JOBS, RUNS
from common.errors import SpecError
from lambda_functions.job_request import resolve_request
from lambda_functions.upload_event import Upload
from local_cloud.account.deployment import Deployment, NotThere
from local_cloud.account.jobs import JobStatus, status

LOOK_AGAIN_SECONDS = 1.0
TRIGGER_SECONDS = 90.0
"""S3 tells EventBridge within seconds, and the trigger takes some to start."""


@dataclass(frozen=True)
class Submitted:
    """`notes`: of the spec, worth reading once."""

    key: str
    upload: Upload
    notes: tuple[str, ...]


def submit(deployment: Deployment, path: Path) -> Submitted:
    """Raises SpecError for what the trigger would refuse without asking AWS."""
    text = _read(path)
    notes = resolve_request(text, path.name).notes
    key = f"{JOBS}{path.name}"
    body = text.encode()
    answer = deployment.s3.put_object(Bucket=deployment.bucket, Key=key, Body=body)
    upload = Upload(deployment.bucket, key, answer.get("VersionId", ""), len(body), datetime.now(UTC))
    return Submitted(key, upload, notes)


def find_job(
    deployment: Deployment,
    submitted: Submitted,
    *,
    patience: float = TRIGGER_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> JobStatus:
    """What the trigger made of the upload: a job, or a refusal. Raises NotThere if it has not looked at it in time."""
    deadline = time.monotonic() + patience
    while (job_id := _job_id(deployment, submitted)) is None:
        if time.monotonic() > deadline:
            raise NotThere(
                f"nobody has taken {submitted.key}",
                why=f"for {patience:.0f} seconds there was neither a job nor a refusal",
                fix="dorylus doctor; the trigger's own log says what it was told",
            )
        sleep(LOOK_AGAIN_SECONDS)
    return status(deployment, job_id)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} cannot be read", why=str(error)) from None


def _job_id(deployment: Deployment, submitted: Submitted) -> str | None:
    digest = submitted.upload.digest
    known = deployment.jobs.get_item(Key={"id": f"upload#{digest}"}, ConsistentRead=True).get("Item")
    if known is not None:
        return str(known["job_id"])
    # A refused spec has a status file and no record; the end of its id is the upload's.
    pages = deployment.s3.get_paginator("list_objects_v2").paginate(
        Bucket=deployment.bucket, Prefix=RUNS, Delimiter="/"
    )
    folders = [
        entry["Prefix"].removeprefix(RUNS).rstrip("/") for page in pages for entry in page.get("CommonPrefixes", ())
    ]
    return next((folder for folder in folders if folder.endswith(f"-{digest[:6]}")), None)

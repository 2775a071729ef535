"""Jobs of a deployment: what their records say, asking one to stop, and what it left in its run folder."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.cloud_names import STATUS, STOP, JobState, run_key
from local_cloud.account.deployment import Deployment, NotThere

METRICS = "metrics.jsonl"


@dataclass(frozen=True)
class JobStatus:
    """created, updated: seconds since 1970, 0 where a job never began."""

    job_id: str
    state: JobState
    reason: str
    created: int
    updated: int
    notes: tuple[str, ...] = ()
    record: Mapping[str, Any] | None = None
    """The whole of it, for whoever wants to see more."""


def status(deployment: Deployment, job_id: str) -> JobStatus:
    """Of its record, or, of a job that was refused before it had one, of its status file. Raises NotThere."""
    record = deployment.jobs.get_item(Key={"id": job_id}, ConsistentRead=True).get("Item")
    if record is not None:
        return _of_record(record)
    written = _read(deployment, run_key(job_id, STATUS))
    if written is None:
        raise NotThere(f"no job {job_id} is known", why=f"stack {deployment.name}", fix="dorylus list shows all jobs")
    refused = json.loads(written)
    return JobStatus(job_id, JobState(refused["state"]), refused["failure_reason"], 0, 0, tuple(refused["notes"]))


def list_jobs(deployment: Deployment) -> list[JobStatus]:
    """The newest first."""
    table = deployment.jobs
    pages = table.meta.client.get_paginator("scan").paginate(
        TableName=deployment.jobs_table, FilterExpression="attribute_exists(spec)", ConsistentRead=True
    )
    jobs = [_of_record(record) for page in pages for record in page["Items"]]
    return sorted(jobs, key=lambda job: job.created, reverse=True)


def stop(deployment: Deployment, job_id: str) -> JobStatus:
    """Ask for its end at the next pause. Raises NotThere for an unknown job, and for one that is over."""
    job = status(deployment, job_id)
    if job.state.is_final:
        raise NotThere(f"job {job_id} is over", why=f"it is {job.state}", fix="dorylus download fetches its results")
    deployment.s3.put_object(Bucket=deployment.bucket, Key=run_key(job_id, STOP), Body=b"")
    return job


def download(deployment: Deployment, job_id: str, folder: Path) -> Iterator[Path]:
    """The run folder, file by file; what is there and of the same size and age is left alone.

    A file appears whole. Raises NotThere if there is nothing.
    """
    prefix, found = run_key(job_id), False
    for entry in _objects(deployment, prefix):
        name = entry["Key"].removeprefix(prefix)
        if name in ("", STOP):
            continue
        found, path = True, folder / name
        if folder.resolve() not in path.resolve().parents:
            raise NotThere(f"{entry['Key']} leads out of {folder}", why="its name has '..' in it")
        if not _is_there(path, entry):
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f".{path.name}.part")
            deployment.s3.download_file(deployment.bucket, entry["Key"], str(unfinished))
            unfinished.replace(path)
            yield path
    if not found:
        raise NotThere(f"job {job_id} has left nothing", why=f"s3://{deployment.bucket}/{prefix} is empty")


def metrics(deployment: Deployment, job_id: str) -> list[dict[str, Any]]:
    """One entry per epoch that has ended, as far as they were written."""
    written = _read(deployment, run_key(job_id, METRICS)) or ""
    return [json.loads(line) for line in written.splitlines()]


def _of_record(record: Mapping[str, Any]) -> JobStatus:
    return JobStatus(
        job_id=record["id"],
        state=JobState(record["state"]),
        reason=record["failure_reason"],
        created=int(record["created"]),
        updated=int(record["updated"]),
        record=record,
    )


def _read(deployment: Deployment, key: str) -> str | None:
    """None if it is not there."""
    try:
        body: bytes = deployment.s3.get_object(Bucket=deployment.bucket, Key=key)["Body"].read()
    except deployment.s3.exceptions.NoSuchKey:
        return None
    return body.decode()


def _objects(deployment: Deployment, prefix: str) -> Iterator[Mapping[str, Any]]:
    pages = deployment.s3.get_paginator("list_objects_v2").paginate(Bucket=deployment.bucket, Prefix=prefix)
    for page in pages:
        yield from page.get("Contents", ())


def _is_there(path: Path, entry: Mapping[str, Any]) -> bool:
    if not path.is_file():
        return False
    found = path.stat()
    return found.st_size == entry["Size"] and found.st_mtime >= entry["LastModified"].timestamp()

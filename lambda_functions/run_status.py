"""What stands in the bucket: runs/<job_id>/status.json, for whoever looks there and not into a table."""

import json
from datetime import UTC, datetime

import boto3

from common.cloud_names import STATUS, JobState, run_key


def write_status(bucket: str, job_id: str, state: JobState, reason: str = "", *, notes: tuple[str, ...] = ()) -> str:
    """The key."""
    status = {
        "job_id": job_id,
        "state": state.value,
        "failure_reason": reason,
        "notes": list(notes),
        "updated": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    key = run_key(job_id, STATUS)
    body = (json.dumps(status, indent=2, ensure_ascii=False) + "\n").encode()
    boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json")
    return key


def object_exists(bucket: str, key: str) -> bool:
    """By listing: who may list by prefix only is told "forbidden" when asking for an object that is not there."""
    found = boto3.client("s3").list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
    return any(entry["Key"] == key for entry in found.get("Contents", ()))

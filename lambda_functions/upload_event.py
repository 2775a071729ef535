"""Which object an event speaks of: EventBridge gives keys as they are, a bucket's own notification encodes them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_plus


@dataclass(frozen=True)
class Upload:
    bucket: str
    key: str
    version: str
    num_bytes: int
    time: datetime

    @property
    def digest(self) -> str:
        """The same for the same upload, however often it is told of."""
        return hashlib.sha256("\0".join((self.bucket, self.key, self.version)).encode()).hexdigest()

    @property
    def file_name(self) -> str:
        return self.key.rpartition("/")[2]


def upload_of(event: Mapping[str, Any]) -> Upload:
    if "Records" in event:
        (record,) = event["Records"]  # S3 tells of one object at a time
        stored = record["s3"]["object"]
        key, version = unquote_plus(stored["key"]), stored.get("versionId", "")
        return _upload(record["s3"]["bucket"]["name"], key, version, stored["size"], record["eventTime"])
    stored = event["detail"]["object"]
    bucket = event["detail"]["bucket"]["name"]
    return _upload(bucket, stored["key"], stored.get("version-id", ""), stored["size"], event["time"])


def _upload(bucket: str, key: str, version: str, num_bytes: int, time: str) -> Upload:
    return Upload(bucket, key, version, num_bytes, datetime.fromisoformat(time).astimezone(UTC))

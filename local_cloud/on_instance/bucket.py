"""Files from a bucket and to it: many ranges at a time, straight to their places on disk.

One connection to S3 carries some tens of MB a second, a server's network many times that.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ClusterError
from local_cloud.on_instance.aws import Aws, code_of

RANGE_BYTES = 16 * 2**20
PART_BYTES = 64 * 2**20
"""Of an upload in parts; there may be 10,000."""
THREADS = 16
NOT_THERE = frozenset({"NoSuchKey", "404"})


@dataclass(frozen=True)
class Entry:
    key: str
    num_bytes: int


class Bucket:
    """What goes wrong is a ClusterError with AWS's words."""

    def __init__(self, aws: Aws, name: str) -> None:
        self._s3, self.name = aws.s3, name

    def entries(self, prefix: str) -> list[Entry]:
        """All below it."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return self._asked(
            prefix, lambda: [Entry(one["Key"], one["Size"]) for page in pages for one in page.get("Contents", ())]
        )

    def fetch(self, entries: Sequence[Entry], prefix: str, folder: Path) -> None:
        """Each to its key without `prefix`, below `folder`. Raises ClusterError if a key leads out of it."""
        places = {entry.key: folder / entry.key.removeprefix(prefix).lstrip("/") for entry in entries}
        for key, place in places.items():
            if folder.resolve() not in place.resolve().parents:
                raise ClusterError(f"s3://{self.name}/{key} leads out of its folder", fix="name it without '..'")
        ranges = [
            (entry.key, places[entry.key], start, min(RANGE_BYTES, entry.num_bytes - start))
            for entry in entries
            for start in range(0, entry.num_bytes, RANGE_BYTES)
        ]
        for entry in entries:
            places[entry.key].parent.mkdir(parents=True, exist_ok=True)
            with places[entry.key].open("wb") as file:
                file.truncate(entry.num_bytes)
        self._all(lambda one: self._fetch_range(*one), ranges)

    def read(self, key: str) -> bytes | None:
        """None if it is not there."""
        try:
            body: bytes = self._s3.get_object(Bucket=self.name, Key=key)["Body"].read()
        except ClientError as error:
            if code_of(error) in NOT_THERE:
                return None
            raise self._failed(key, error) from error
        return body

    def write(self, key: str, data: bytes) -> None:
        self._asked(key, lambda: self._s3.put_object(Bucket=self.name, Key=key, Body=data))

    def send(self, path: Path, key: str) -> None:
        """There as a whole or not at all."""
        if path.stat().st_size <= PART_BYTES:
            self.write(key, path.read_bytes())
        else:
            self._asked(key, lambda: self._send_parts(path, key))

    def send_folder(self, folder: Path, prefix: str, *, last: str) -> None:
        """All its files; `last`, which says that it is whole, when the others are there."""
        names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
        self._all(lambda name: self.send(folder / name, prefix + name), [name for name in names if name != last])
        self.send(folder / last, prefix + last)

    # ---- parts

    def _fetch_range(self, key: str, place: Path, start: int, size: int) -> None:
        wanted = f"bytes={start}-{start + size - 1}"
        data = self._asked(key, lambda: self._s3.get_object(Bucket=self.name, Key=key, Range=wanted)["Body"].read())
        handle = os.open(place, os.O_WRONLY)
        try:
            os.pwrite(handle, data, start)
        finally:
            os.close(handle)

    def _send_parts(self, path: Path, key: str) -> None:
        where = {"Bucket": self.name, "Key": key}
        upload = self._s3.create_multipart_upload(**where)["UploadId"]

        def send(number: int) -> dict[str, Any]:
            with path.open("rb") as file:
                file.seek((number - 1) * PART_BYTES)
                body = file.read(PART_BYTES)
            answer = self._s3.upload_part(**where, UploadId=upload, PartNumber=number, Body=body)
            return {"PartNumber": number, "ETag": answer["ETag"]}

        try:
            parts = [send(number) for number in range(1, -(-path.stat().st_size // PART_BYTES) + 1)]
            self._s3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})
        except BaseException:
            self._s3.abort_multipart_upload(**where, UploadId=upload)
            raise

    def _all(self, do: Callable[[Any], None], what: Iterable[Any]) -> None:
        with ThreadPoolExecutor(THREADS, thread_name_prefix="bucket") as pool:
            for _ in pool.map(do, what):
                pass

    def _asked(self, key: str, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except (ClientError, BotoCoreError) as error:
            raise self._failed(key, error) from error

    def _failed(self, key: str, error: Exception) -> ClusterError:
        return ClusterError(f"s3://{self.name}/{key} cannot be reached", why=str(error), fix="start the job again")

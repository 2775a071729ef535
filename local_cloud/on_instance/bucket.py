"""Files from a bucket and to it: several at a time, the large ones in pieces.

One connection to S3 carries some tens of MB a second, a server's network many times that.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ClusterError
from local_cloud.on_instance.aws import Aws, code_of

RANGE_BYTES = 16 * 2**20
PART_BYTES = 64 * 2**20
"""Of an upload in parts; there may be 10,000."""
FILES_AT_ONCE, PIECES_AT_ONCE = 4, 4
NOT_THERE = frozenset({"NoSuchKey", "404"})


class Bucket:
    """What goes wrong is a ClusterError with AWS's words."""

    def __init__(self, aws: Aws, name: str) -> None:
        self._s3, self._requests, self.name = aws.s3, aws.requests, name

    @property
    def requests(self) -> Mapping[str, int]:
        """To S3, of this process, to whatever bucket."""
        return self._requests.counts

    def keys(self, prefix: str) -> list[str]:
        """All below it."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return self._asked(prefix, lambda: [one["Key"] for page in pages for one in page.get("Contents", ())])

    def fetch(self, keys: Sequence[str], prefix: str, folder: Path) -> None:
        """Each to its key without `prefix`, below `folder`. Raises ClusterError if a key leads out of it."""
        places = {key: folder / key.removeprefix(prefix).lstrip("/") for key in keys}
        for key, place in places.items():
            if folder.resolve() not in place.resolve().parents:
                raise ClusterError(f"s3://{self.name}/{key} leads out of its folder", fix="name it without '..'")
        for place in places.values():
            place.parent.mkdir(parents=True, exist_ok=True)
        self._all(lambda key: self._fetch(key, places[key]), places)

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
        config = _in_pieces(PART_BYTES)
        self._asked(key, lambda: self._s3.upload_file(str(path), self.name, key, Config=config))

    def send_folder(self, folder: Path, prefix: str, *, last: str) -> None:
        """All its files; `last`, which says that it is whole, when the others are there."""
        names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
        self._all(lambda name: self.send(folder / name, prefix + name), [name for name in names if name != last])
        self.send(folder / last, prefix + last)

    def _fetch(self, key: str, place: Path) -> None:
        config = _in_pieces(RANGE_BYTES)
        self._asked(key, lambda: self._s3.download_file(self.name, key, str(place), Config=config))

    def _all(self, do: Callable[[Any], None], what: Iterable[Any]) -> None:
        with ThreadPoolExecutor(FILES_AT_ONCE, thread_name_prefix="bucket") as pool:
            for _ in pool.map(do, what):
                pass

    def _asked(self, key: str, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except (ClientError, BotoCoreError, Boto3Error) as error:
            raise self._failed(key, error) from error

    def _failed(self, key: str, error: Exception) -> ClusterError:
        return ClusterError(f"s3://{self.name}/{key} cannot be reached", why=str(error), fix="start the job again")


def _in_pieces(num_bytes: int) -> TransferConfig:
    return TransferConfig(multipart_threshold=num_bytes, multipart_chunksize=num_bytes, max_concurrency=PIECES_AT_ONCE)

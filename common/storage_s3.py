"""A prefix of a bucket, as AWS and those that speak like it keep it. Credentials are found as all of AWS's tools do."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import s3fs
from aiobotocore.session import AioSession  # type: ignore[import-untyped]
from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

from common.s3_requests import HOOK, S3Requests

TIMEOUTS = {"connect_timeout": 10, "read_timeout": 60}


class S3Prefix:
    def __init__(self, url: str, *, endpoint_url: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._path = self._url.removeprefix("s3://")
        self._requests, session = S3Requests(), AioSession()
        session.register(HOOK, self._requests.heard)
        # What others write must be seen: no listing and no client is taken from a cache.
        self._files = s3fs.S3FileSystem(
            endpoint_url=endpoint_url,
            use_listings_cache=False,
            skip_instance_cache=True,
            config_kwargs=TIMEOUTS,
            session=session,
        )

    @property
    def url(self) -> str:
        return self._url

    @property
    def requests(self) -> Mapping[str, int]:
        return self._requests.counts

    def write(self, name: str, data: bytes) -> None:
        with self._as_os_error():
            self._files.pipe_file(f"{self._path}/{name}", data)

    def read(self, name: str) -> bytes:
        with self._as_os_error():
            found: bytes = self._files.cat_file(f"{self._path}/{name}")
            return found

    def folders(self) -> list[str]:
        with self._as_os_error():
            try:
                entries = self._files.ls(self._path, detail=True)
            except FileNotFoundError:
                self._need_the_bucket()
                return []
        return sorted(entry["name"].rpartition("/")[2] for entry in entries if entry["type"] == "directory")

    def remove(self, folder: str) -> None:
        with self._as_os_error():
            try:
                self._files.rm(f"{self._path}/{folder}", recursive=True)
            except FileNotFoundError:
                self._need_the_bucket()

    def _need_the_bucket(self) -> None:
        bucket = self._path.partition("/")[0]
        if not self._files.exists(bucket):
            raise FileNotFoundError(f"there is no bucket {bucket}, or it may not be looked at")

    @contextmanager
    def _as_os_error(self) -> Iterator[None]:
        try:
            yield
        except BotoCoreError as error:  # no credentials, no connection: before AWS has answered
            raise OSError(str(error)) from error

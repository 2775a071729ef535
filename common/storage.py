"""One small face over a folder of this machine or a bucket: whole files, each there as a whole or not at all.

folder   written beside its place, synced, renamed into it
s3://    one put

All calls block: in an event loop they belong into a thread. What goes wrong is an OSError, whatever lies beneath.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Storage(Protocol):
    """Names are relative to `url`, with slashes."""

    @property
    def url(self) -> str: ...

    @property
    def requests(self) -> Mapping[str, int]:
        """So far, as s3_requests.py counts those that are billed; of a folder none."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Replaces what was there; when it returns the file outlives a power cut."""
        ...

    def read(self, name: str) -> bytes:
        """Raises FileNotFoundError if there is none."""
        ...

    def folders(self) -> list[str]:
        """Names of the folders right below, sorted; none if nothing was ever written."""
        ...

    def remove(self, folder: str) -> None:
        """With all that is in it; nothing happens if it is not there."""
        ...


def open_storage(url: str, *, endpoint_url: str | None = None) -> Storage:
    """`url`: a folder, or s3://bucket/prefix; `endpoint_url`: of another S3 than AWS's. Nothing is touched yet."""
    if url.startswith("s3://"):
        # Here, not above: AWS's client takes a second to load, and a folder needs none.
        from common.storage_s3 import S3Prefix

        return S3Prefix(url, endpoint_url=endpoint_url)
    return LocalFolder(Path(url))


def is_remote(url: str) -> bool:
    return url.startswith("s3://")


class LocalFolder:
    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def url(self) -> str:
        return str(self._path)

    @property
    def requests(self) -> Mapping[str, int]:
        return {}

    def write(self, name: str, data: bytes) -> None:
        place = self._path / name
        made = [folder for folder in (place.parent, *place.parent.parents) if not folder.exists()]
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}")
        try:
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, place)
        except BaseException:
            _take_back(beside, made)
            raise
        for folder in (place.parent, *(new.parent for new in made)):
            _sync(folder)

    def read(self, name: str) -> bytes:
        return (self._path / name).read_bytes()

    def folders(self) -> list[str]:
        if not self._path.exists():
            return []
        return sorted(entry.name for entry in self._path.iterdir() if entry.is_dir())

    def remove(self, folder: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._path / folder)


def _take_back(beside: Path, made: list[Path]) -> None:
    with contextlib.suppress(OSError):
        beside.unlink(missing_ok=True)
    for folder in made:
        with contextlib.suppress(OSError):  # somebody else writes there, too
            folder.rmdir()


def _sync(folder: Path) -> None:
    """A file's name is its folder's content, and is kept by the folder's own sync."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

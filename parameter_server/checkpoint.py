"""Checkpoints: written whole or not at all, read only if every byte is as it was written.

    <folder>/epoch-000010/shard-0-of-2.safetensors, shard-1-of-2.safetensors, manifest.json

Each parameter server writes its shard; when all have, number 0 writes the manifest, which names every file with its
size and SHA-256. Which checkpoint is the newest is decided by epoch, never by a clock. All calls block.
"""

import errno
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from common.errors import CheckpointError
from common.job_setup import GraphFacts
from common.job_spec import JobSpec
from common.storage import Storage, is_remote, open_storage
from parameter_server.checkpoint_files import (
    MANIFEST,
    Damaged,
    Manifest,
    WrittenFile,
    check_file,
    decode_manifest,
    decode_shard,
    encode_manifest,
    encode_shard,
    join_states,
    shard_file,
    written,
)
from parameter_server.same_job import JobRecord, check_same_job
from parameter_server.saved_state import ClockRecord, ShardState

__all__ = ["Checkpoint", "CheckpointFolder", "WrittenFile", "read_checkpoint"]

FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Checkpoint:
    """`url` of its own folder; `state` of all parameter servers joined, for any number of them."""

    url: str
    job: JobRecord
    clock: ClockRecord
    state: ShardState

    @property
    def epoch(self) -> int:
        return self.clock.epoch

    def check_job(self, spec: JobSpec, facts: GraphFacts) -> None:
        """Raises CheckpointError if it is another job's, with the keys that differ."""
        check_same_job(self.job, spec, facts, self.url)


class CheckpointFolder:
    """All of one run. `url`: a folder of this machine, or s3://bucket/prefix; `keep`: how many of the newest."""

    def __init__(self, url: str, *, endpoint_url: str | None = None, keep: int = 2) -> None:
        self._storage: Storage = open_storage(url, endpoint_url=endpoint_url)
        self._keep = keep

    @property
    def url(self) -> str:
        return self._storage.url

    @property
    def requests(self) -> Mapping[str, int]:
        """To S3, so far."""
        return self._storage.requests

    def write_shard(self, epoch: int, number: int, count: int, state: ShardState) -> WrittenFile:
        """Raises CheckpointError; older checkpoints are then as they were."""
        name, data = shard_file(number, count), encode_shard(state)
        with self._in_words(epoch, f"{name} ({len(data):,} bytes)"):
            self._storage.write(f"{folder_name(epoch)}/{name}", data)
        return written(name, data)

    def commit(self, clock: ClockRecord, files: Sequence[WrittenFile], job: JobRecord) -> None:
        """Makes it a checkpoint, then deletes what need not be kept. `files`: of all shards, in their order.

        Raises CheckpointError if it is none now. What cannot be deleted is left for the next time.
        """
        data = encode_manifest(Manifest(job=job, clock=clock, files=tuple(files)))
        with self._in_words(clock.epoch, MANIFEST):
            self._storage.write(f"{folder_name(clock.epoch)}/{MANIFEST}", data)
        with suppress(OSError):
            self._prune(clock)

    def discard(self, epoch: int) -> None:
        """Take back what was written of a checkpoint that failed, as far as that can be done."""
        with suppress(OSError):
            if not self._has_manifest(epoch):
                self._storage.remove(folder_name(epoch))

    def newest(self, note: Callable[[str], None] = lambda _: None) -> Checkpoint | None:
        """The newest that is whole; `note` hears why others were not taken. None if no checkpoint was ever finished.

        Raises CheckpointError if all that were finished are damaged, or if nobody can look.
        """
        damaged = []
        for epoch in reversed(self._epochs()):
            try:
                return self._read(epoch)
            except FileNotFoundError:
                note(f"the checkpoint of epoch {epoch} was never finished: it is not used")
            except Damaged as what:
                damaged.append(f"epoch {epoch}: {what}")
                note(f"the checkpoint of epoch {epoch} is damaged and is not used: {what}")
        if not damaged:
            return None
        raise CheckpointError(
            f"no checkpoint in {self.url} can be used",
            why="; ".join(damaged),
            fix="put back what was changed, or start a new run from the run folder's spec.yaml",
        )

    def read(self, epoch: int) -> Checkpoint:
        """Raises CheckpointError if it is damaged or not there."""
        try:
            return self._read(epoch)
        except (Damaged, FileNotFoundError) as error:
            raise CheckpointError(
                f"the checkpoint of epoch {epoch} in {self.url} cannot be read",
                why=str(error),
                fix="resume the run: it goes on from the newest checkpoint that is whole",
            ) from error

    def remove_after(self, epoch: int) -> None:
        """Those of later epochs: a job that goes on from this one writes them again. Raises CheckpointError."""
        with self._in_words(epoch, "what came after it"):
            for later in self._epochs():
                if later > epoch:
                    self._storage.remove(folder_name(later))

    # ---- reading

    def _read(self, epoch: int) -> Checkpoint:
        """Raises Damaged, and FileNotFoundError without a manifest."""
        folder = folder_name(epoch)
        manifest = decode_manifest(self._load(folder, MANIFEST))
        if manifest.clock.epoch != epoch:
            raise Damaged(f"{MANIFEST} is of epoch {manifest.clock.epoch}")
        states = [self._shard(folder, file, manifest.clock) for file in manifest.files]
        try:
            state = join_states(states)
        except (ValueError, IndexError, KeyError) as error:
            raise Damaged(f"its shards do not fit together: {error}") from error
        return Checkpoint(f"{self.url}/{folder}", manifest.job, manifest.clock, state)

    def _shard(self, folder: str, file: WrittenFile, clock: ClockRecord) -> ShardState:
        try:
            data = self._load(folder, file.name)
        except FileNotFoundError:
            raise Damaged(f"{file.name} is missing") from None
        check_file(file, data)
        return decode_shard(file.name, data, clock)

    def _load(self, folder: str, name: str) -> bytes:
        """Raises FileNotFoundError, and Damaged if it is there and cannot be read."""
        try:
            return self._storage.read(f"{folder}/{name}")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise Damaged(f"{name} cannot be read: {_reason(error)}") from error

    def _epochs(self) -> list[int]:
        """Of all that were begun, ascending."""
        try:
            names = self._storage.folders()
        except OSError as error:
            raise CheckpointError(
                f"the checkpoints in {self.url} cannot be listed", why=_reason(error), fix=_fix(error, self.url)
            ) from error
        return sorted(int(found[1]) for name in names if (found := re.fullmatch(r"epoch-(\d+)", name)))

    def _has_manifest(self, epoch: int) -> bool:
        try:
            self._storage.read(f"{folder_name(epoch)}/{MANIFEST}")
        except FileNotFoundError:
            return False
        return True

    # ---- deleting

    def _prune(self, clock: ClockRecord) -> None:
        """Kept are the newest and the earliest that holds the best version; what was never finished goes, too."""
        clocks = {epoch: self._clock(epoch) for epoch in self._epochs() if epoch <= clock.epoch}
        finished = [epoch for epoch, found in clocks.items() if found is not None]
        of_best = [
            epoch
            for epoch, found in clocks.items()
            if found is not None and found.best_version is not None and found.best_version == clock.best_version
        ]
        wanted = {*finished[-self._keep :], *of_best[:1]}
        for epoch in clocks.keys() - wanted:
            self._storage.remove(folder_name(epoch))

    def _clock(self, epoch: int) -> ClockRecord | None:
        try:
            return decode_manifest(self._load(folder_name(epoch), MANIFEST)).clock
        except (Damaged, FileNotFoundError):
            return None

    @contextmanager
    def _in_words(self, epoch: int, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.discard(epoch)
            raise CheckpointError(
                f"the checkpoint of epoch {epoch} cannot be written to {self.url}",
                why=f"{what}: {_reason(error)}",
                fix=_fix(error, self.url),
            ) from error


def folder_name(epoch: int) -> str:
    return f"epoch-{epoch:06d}"


def read_checkpoint(url: str, *, endpoint_url: str | None = None) -> Checkpoint:
    """One that `newest` has named by its own folder. Raises CheckpointError."""
    folder, _, name = url.rpartition("/")
    return CheckpointFolder(folder, endpoint_url=endpoint_url).read(int(name.removeprefix("epoch-")))


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _fix(error: OSError, url: str) -> str:
    if error.errno in FULL:
        return "free space there; older checkpoints are unharmed"
    if not is_remote(url):
        return "make the folder writable for this user, or name another one with --output"
    if isinstance(error, FileNotFoundError):
        return f"create the bucket of {url}, or correct its name"
    return f"allow s3:ListBucket on the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject below {url}"

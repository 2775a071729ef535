"""Has checkpoints written, all shards and then the manifest, and says what becomes of the job when that fails.

A run goes on without a checkpoint and tries again at the next one: what is lost is time, if it breaks off. Three
failures in a row end it, for then nobody reads its notes.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from common.errors import CheckpointError
from common.wire import messages
from common.wire.clients import ParameterClient
from parameter_server.checkpoint import CheckpointFolder, WrittenFile
from parameter_server.same_job import JobRecord
from parameter_server.saved_state import ClockRecord

MAX_FAILURES = 3


@dataclass(frozen=True)
class CheckpointPlace:
    """Where a job's checkpoints go, and whose they are. `seconds`: one at least so often, at the next pause."""

    folder: CheckpointFolder
    job: JobRecord
    seconds: float


class CheckpointKeeper:
    def __init__(self, place: CheckpointPlace, client: ParameterClient) -> None:
        self._place, self._client = place, client
        self._failures, self._last = 0, time.monotonic()

    async def write(self, record: ClockRecord) -> str | None:
        """None, or a note about why there is none. Raises CheckpointError if that is once too often."""
        self._last = time.monotonic()
        try:
            shards = [_file(told) for told in await self._client.write_checkpoint(record.epoch, record.version)]
            await asyncio.to_thread(self._place.folder.commit, record, shards, self._place.job)
        except CheckpointError as error:
            self._failures += 1
            await asyncio.to_thread(self._place.folder.discard, record.epoch)
            if self._failures >= MAX_FAILURES:
                raise
            return f"{error}\ntraining goes on without it"
        self._failures = 0
        return None

    async def remind(self, wanted: Callable[[], None]) -> None:
        """Until cancelled: `wanted` when the last checkpoint is too long ago."""
        while True:
            await asyncio.sleep(max(1.0, self._last + self._place.seconds - time.monotonic()))
            if time.monotonic() - self._last >= self._place.seconds:
                self._last = time.monotonic()
                wanted()


def _file(told: messages.ShardWritten) -> WrittenFile:
    if told.error is not None:
        raise CheckpointError(*told.error)
    return WrittenFile(told.name, told.num_bytes, told.sha256)

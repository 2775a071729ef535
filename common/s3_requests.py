"""Requests to S3 as they are sent, by what AWS bills them as. Tried once more, a request is billed once more."""

import threading
from collections.abc import Mapping

HOOK = "before-send.s3"
"""Of AWS's clients: an event for each request on its way; its name ends in the operation's."""
READS = frozenset({"GetObject", "HeadObject", "HeadBucket"})
FREE = "Delete"
"""How operations begin that cost nothing. Whatever else there is, listing too, is billed as a write."""
S3_READS, S3_WRITES = "s3_reads", "s3_writes"
"""Among what a role counts."""


class S3Requests:
    """`heard` is a handler of HOOK; clients ask from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reads = self._writes = 0

    def heard(self, event_name: str, **_: object) -> None:
        operation = event_name.rpartition(".")[2]
        with self._lock:
            if operation in READS:
                self._reads += 1
            elif not operation.startswith(FREE):
                self._writes += 1

    @property
    def counts(self) -> Mapping[str, int]:
        return {S3_READS: self._reads, S3_WRITES: self._writes}

"""A sign of life at regular times, from a thread of its own: neither a cut nor a busy loop holds it up."""

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ClusterError
from local_cloud.on_instance.job_record import Superseded

LOG = logging.getLogger(__name__)
BEAT_SECONDS = 5.0
"""Well below what the state machine, the dead man's switch and the other servers wait for."""


class Beats:
    """While the block lasts. One that fails is made up for by the next; if the job goes on without this instance, the
    process gets a SIGTERM."""

    def __init__(self, beat: Callable[[], None], *, seconds: float = BEAT_SECONDS) -> None:
        self._beat, self._seconds = beat, seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="beats", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._seconds):
            try:
                self._beat()
            except Superseded as error:
                LOG.warning("%s", error.what)
                os.kill(os.getpid(), signal.SIGTERM)
                return
            except (ClientError, BotoCoreError, ClusterError, OSError) as error:
                LOG.warning("a beat was lost: %s", error)

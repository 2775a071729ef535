"""The state machine's task, as the one who does it speaks of it: it goes on, it is done, it has failed.

The token stands in the job's record as soon as the machine waits, which may be after the instances are there.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping

from botocore.exceptions import ClientError

from common.errors import ClusterError
from local_cloud.on_instance.aws import Aws
from local_cloud.on_instance.job_record import JobRecord, JobRecords

LOG = logging.getLogger(__name__)
TOKEN_SECONDS = 120.0
LOOK_SECONDS = 0.5
MOST_CAUSE = 2000
"""Characters; the service takes 32,768 bytes."""


class Task:
    def __init__(self, aws: Aws, records: JobRecords) -> None:
        self._states, self._records = aws.states, records
        self._pause = threading.Event()

    def beat(self, record: JobRecord) -> None:
        if token := record.text("task_token"):
            self._send(lambda: self._states.send_task_heartbeat(taskToken=token))

    def done(self, output: Mapping[str, str]) -> None:
        token = self._token()
        self._send(lambda: self._states.send_task_success(taskToken=token, output=json.dumps(dict(output))))

    def failed(self, error: str, cause: str) -> None:
        token = self._token()
        self._send(lambda: self._states.send_task_failure(taskToken=token, error=error, cause=cause[:MOST_CAUSE]))

    def _token(self) -> str:
        """Raises Superseded if the machine is past this generation, ClusterError if it does not wait at all."""
        until = time.monotonic() + TOKEN_SECONDS
        while not (token := self._records.beat().text("task_token")):
            if time.monotonic() > until:
                raise ClusterError(
                    "the state machine does not wait for this job", why=f"no task token for {TOKEN_SECONDS:.0f} s"
                )
            self._pause.wait(LOOK_SECONDS)
        return token

    def _send(self, send: Callable[[], object]) -> None:
        try:
            send()
        except ClientError as error:
            # The machine no longer waits for this: it has timed out, or somebody else was earlier.
            LOG.warning("the state machine does not listen: %s", error)

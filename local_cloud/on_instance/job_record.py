"""The job's record as its servers read it, and the little that they write there."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from common.cloud_names import JobState
from common.errors import ClusterError
from local_cloud.on_instance.aws import Aws, Plain, is_refused, plain, typed
from local_cloud.on_instance.metadata import Instance

OWN_SECONDS, LOOK_SECONDS = 60.0, 0.5
OVER = {f":over{number}": state.value for number, state in enumerate(s for s in JobState if s.is_final)}


class Superseded(ClusterError):
    """The job is over, or goes on with other instances."""


@dataclass(frozen=True)
class JobRecord:
    """docs/deploy/contract.md says what each attribute is for."""

    values: Mapping[str, Any]

    def text(self, name: str) -> str:
        return str(self.values.get(name, ""))

    def number(self, name: str) -> int:
        return int(self.values.get(name, 0))

    @property
    def is_to_stop(self) -> bool:
        return bool(self.values.get("stop", False))


class JobRecords:
    """One record, as the instances of one generation may see it: what others wrote since is refused."""

    def __init__(self, aws: Aws, table: str, instance: Instance) -> None:
        self._dynamodb, self._table, self._of = aws.dynamodb, table, instance
        self._pause = threading.Event()

    def read(self) -> JobRecord:
        """Raises ClusterError if there is none."""
        key = typed({"id": self._of.job_id})
        found = self._dynamodb.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")
        if found is None:
            raise ClusterError(f"no job {self._of.job_id} is known", why=f"it is not in the table {self._table}")
        return JobRecord(plain(found))

    def own(self) -> JobRecord:
        """As soon as it speaks of this generation: it is written a moment after the launch. Raises Superseded."""
        until = time.monotonic() + OWN_SECONDS
        while not self._is_own(record := self.read()):
            if record.number("generation") > self._of.generation or time.monotonic() > until:
                raise self._superseded()
            self._pause.wait(LOOK_SECONDS)
        return record

    def _is_own(self, record: JobRecord) -> bool:
        return (record.number("generation"), record.text("phase")) == (self._of.generation, self._of.phase.value)

    def beat(self) -> JobRecord:
        """It lives. Raises Superseded."""
        now = int(time.time())
        return self.write({"beat": now, "updated": now})

    def write(self, changes: Mapping[str, Plain], *, only_from: JobState | None = None) -> JobRecord:
        """Raises Superseded; with `only_from`, also if the state is another one."""
        names = {f"#{number}": name for number, name in enumerate(changes)}
        values = {f":{number}": value for number, value in enumerate(changes.values())}
        own: dict[str, Plain] = {":generation": self._of.generation, ":phase": self._of.phase.value}
        condition = f"generation = :generation AND phase = :phase AND NOT (#state IN ({', '.join(OVER)}))"
        if only_from is not None:
            own[":from"] = only_from.value
            condition += " AND #state = :from"
        try:
            answer = self._dynamodb.update_item(
                TableName=self._table,
                Key=typed({"id": self._of.job_id}),
                UpdateExpression=f"SET {', '.join(f'#{number} = :{number}' for number in range(len(changes)))}",
                ConditionExpression=condition,
                ExpressionAttributeNames={**names, "#state": "state"},
                ExpressionAttributeValues=typed({**values, **own, **OVER}),
                ReturnValues="ALL_NEW",
            )
        except ClientError as error:
            if is_refused(error):
                raise self._superseded() from None
            raise
        return JobRecord(plain(answer["Attributes"]))

    def _superseded(self) -> Superseded:
        return Superseded(
            f"generation {self._of.generation} of {self._of.job_id} has ended",
            why="the job is over, or another generation has begun",
        )

"""The jobs' records, as the functions of the job's machinery read and change them.

Every change that two may want at once is conditional: a job is started once, is over once, and what is over stays so.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError

from common.cloud_names import ACTIVE_JOBS, JobState
from common.errors import ClusterError

KEEP_SECONDS = 90 * 24 * 3600
"""How long the record of a job that is over, and of an upload, is kept."""
OVER = tuple(state.value for state in JobState if state.is_final)


@dataclass(frozen=True)
class NewJob:
    """`upload`: of (bucket, key, version); `content`: of the spec's bytes; both as digests."""

    record: Mapping[str, Any]
    upload: str
    content: str
    replaces: str = ""
    """Id of the job that last had the same content; empty if none had."""


class JobTable:
    def __init__(self, name: str) -> None:
        self._name = name
        self._resource = boto3.resource("dynamodb")
        self._table = self._resource.Table(name)

    def get(self, job_id: str) -> dict[str, Any]:
        """Raises ClusterError if there is none."""
        found = self.find(job_id)
        if found is None:
            raise ClusterError(f"no job {job_id} is known", why=f"it is not in the table {self._name}")
        return found

    def find(self, item_id: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._table.get_item(Key={"id": item_id}, ConsistentRead=True).get("Item")
        return found

    def active(self) -> set[str]:
        """Jobs that are not over."""
        return set((self.find(ACTIVE_JOBS) or {}).get("jobs", ()))

    def start(self, job: NewJob) -> bool:
        """All or nothing. False if this upload was started before, or another one of the same content just now."""
        job_id, expires = job.record["id"], int(time.time()) + KEEP_SECONDS
        upload = {"id": f"upload#{job.upload}", "job_id": job_id, "expires": expires}
        content = {"id": f"content#{job.content}", "job_id": job_id, "expires": expires}
        one_more = {
            "TableName": self._name,
            "Key": {"id": ACTIVE_JOBS},
            "UpdateExpression": "ADD jobs :one",
            "ExpressionAttributeValues": {":one": {job_id}},
        }
        items = [self._put(job.record), self._put(upload), self._put(content, job.replaces), {"Update": one_more}]
        try:
            self._resource.meta.client.transact_write_items(TransactItems=items)
        except ClientError as error:
            if error.response["Error"]["Code"] == "TransactionCanceledException":
                return False
            raise
        return True

    def _put(self, item: Mapping[str, Any], replaces: str = "") -> dict[str, Any]:
        """On the condition that there is no such item, or that it is still of the job that it `replaces`."""
        put: dict[str, Any] = {"TableName": self._name, "Item": dict(item)}
        if replaces:
            put |= {"ConditionExpression": "job_id = :old", "ExpressionAttributeValues": {":old": replaces}}
        else:
            put["ConditionExpression"] = "attribute_not_exists(id)"
        return {"Put": put}

    def set(self, job_id: str, changes: Mapping[str, Any], *, remove: tuple[str, ...] = ()) -> bool:
        """False, and nothing changed, if the job is over."""
        names = {f"#{number}": name for number, name in enumerate((*changes, *remove))}
        values = {f":{number}": value for number, value in enumerate(changes.values())}
        assignments = ", ".join(f"#{number} = :{number}" for number in range(len(changes)))
        removals = ", ".join(f"#{number}" for number in range(len(changes), len(names)))
        guards = [f":over{number}" for number in range(len(OVER))]
        try:
            self._table.update_item(
                Key={"id": job_id},
                UpdateExpression=f"SET {assignments}" + (f" REMOVE {removals}" if removals else ""),
                ConditionExpression=f"attribute_exists(id) AND NOT (#state IN ({', '.join(guards)}))",
                ExpressionAttributeNames={**names, "#state": "state"},
                ExpressionAttributeValues={**values, **dict(zip(guards, OVER, strict=True))},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def finish(self, job_id: str, state: JobState, reason: str) -> bool:
        """False if it was over before."""
        now = int(time.time())
        last = {"state": state.value, "failure_reason": reason, "updated": now, "expires": now + KEEP_SECONDS}
        is_news = self.set(job_id, last, remove=("task_token",))
        self.forget(job_id)
        return is_news

    def forget(self, job_id: str) -> None:
        """It is not among the active ones any more."""
        self._table.update_item(
            Key={"id": ACTIVE_JOBS},
            UpdateExpression="DELETE jobs :one",
            ExpressionAttributeValues={":one": {job_id}},
        )

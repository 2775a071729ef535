"""Who is who in a generation: one row per server, which an instance becomes by being the first to write it.

A row tells in what order a server gets on: its public key, then where it listens, then that it leaves or why it ended.
Rows bear the time of their last beat; nobody relies on the table's own clearing away.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from common.cloud_names import member_key
from common.errors import ClusterError
from common.role_start import Ended
from common.s3_requests import S3_READS, S3_WRITES
from local_cloud.on_instance.aws import Aws, Plain, is_refused, plain, typed
from local_cloud.on_instance.job_record import Superseded
from local_cloud.on_instance.metadata import Instance

LOST_SECONDS = 40.0
"""Without a beat for so long, a server is gone. Several times the pause between two."""
KEEP_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Member:
    """address: empty until it listens. launcher_key: of parameter server 0 alone, for the one who follows the job."""

    name: str
    instance: str
    public_key: str
    launcher_key: str = ""
    address: str = ""
    port: int = 0
    beat: int = 0
    checkpoint: str | None = None
    """Of parameter server 0: what this generation goes on from; empty: it begins."""
    is_leaving: bool = False
    """Its instance will be taken away."""
    is_done: bool = False
    """Parameter server 0: the job has ended, everybody may go. Others: gone, and its trace handed in."""
    ended: Ended | None = None
    """Its role's last words, if it ended before the job."""
    requests: Mapping[str, int] = field(default_factory=dict)
    """To S3, when it has gone."""

    @property
    def silent_seconds(self) -> float:
        return max(0.0, time.time() - self.beat)

    @property
    def endpoint(self) -> str:
        return f"tcp://{self.address}:{self.port}"


class Members:
    """Of one generation."""

    def __init__(self, aws: Aws, table: str, instance: Instance, names: Sequence[str]) -> None:
        self._dynamodb, self._table, self._me, self._names = aws.dynamodb, table, instance, tuple(names)

    def claim(self, public_key: str, launcher_key: str) -> str:
        """The role that this instance has from now on. Raises ClusterError if all are taken."""
        there = self.rows()
        for name in self._names:
            is_free = name not in there or there[name].silent_seconds > LOST_SECONDS or self._is_mine(there[name])
            if is_free and self._take(name, public_key, launcher_key):
                return name
        raise ClusterError(
            f"instance {self._me.id} finds no role left",
            why=f"all {len(self._names)} of generation {self._me.generation} are taken",
        )

    def _is_mine(self, member: Member) -> bool:
        return member.instance == self._me.id

    def _take(self, name: str, public_key: str, launcher_key: str) -> bool:
        now = int(time.time())
        row: dict[str, Plain] = {"instance": self._me.id, "public_key": public_key, "beat": now}
        if name == "parameter0":
            row["launcher_key"] = launcher_key
        try:
            self._dynamodb.put_item(
                TableName=self._table,
                Item=typed({**self._key(name), **row, "expires": now + KEEP_SECONDS}),
                ConditionExpression="attribute_not_exists(job_id) OR instance = :me OR beat < :old",
                ExpressionAttributeValues=typed({":me": self._me.id, ":old": now - int(LOST_SECONDS)}),
            )
        except ClientError as error:
            if is_refused(error):
                return False
            raise
        return True

    def beat(self, name: str) -> None:
        self.tell(name, {})

    def tell(self, name: str, news: Mapping[str, Plain]) -> None:
        """Of the role that is this instance's. Raises Superseded if it is another one's by now."""
        changes: dict[str, Plain] = {"beat": int(time.time()), **news}
        names = {f"#{number}": each for number, each in enumerate(changes)}
        values = {f":{number}": each for number, each in enumerate(changes.values())}
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key=typed(self._key(name)),
                UpdateExpression=f"SET {', '.join(f'#{number} = :{number}' for number in range(len(changes)))}",
                ConditionExpression="instance = :me",
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=typed({**values, ":me": self._me.id}),
            )
        except ClientError as error:
            if is_refused(error):
                raise Superseded(f"{name} is another instance's now", why=f"{self._me.id} was silent") from None
            raise

    def rows(self) -> dict[str, Member]:
        """By name, as they are now."""
        answer = self._dynamodb.query(
            TableName=self._table,
            KeyConditionExpression="job_id = :job AND begins_with(#member, :generation)",
            ExpressionAttributeNames={"#member": "member"},
            ExpressionAttributeValues=typed(
                {":job": self._me.job_id, ":generation": member_key(self._me.generation, "")}
            ),
            ConsistentRead=True,
        )
        return {member.name: member for member in (_member(plain(item)) for item in answer["Items"])}

    def _key(self, name: str) -> dict[str, Plain]:
        return {"job_id": self._me.job_id, "member": member_key(self._me.generation, name)}


def _member(row: Mapping[str, Any]) -> Member:
    ended = row.get("ended")
    return Member(
        name=str(row["member"]).partition("#")[2],
        instance=str(row["instance"]),
        public_key=str(row["public_key"]),
        launcher_key=str(row.get("launcher_key", "")),
        address=str(row.get("address", "")),
        port=int(row.get("port", 0)),
        beat=int(row["beat"]),
        checkpoint=row.get("checkpoint"),
        is_leaving=bool(row.get("leaving", False)),
        is_done=bool(row.get("done", False)),
        ended=None if ended is None else msgspec.json.decode(ended, type=Ended),
        requests={name: int(row[name]) for name in (S3_READS, S3_WRITES) if name in row},
    )

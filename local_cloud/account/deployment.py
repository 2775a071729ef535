"""The stack that `cdk deploy` made, as this machine finds it: by its name, in the account that the credentials name."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ClusterError
from common.pricing import price_note

DEFAULT_NAME = "dorylus"
OUTPUTS = {"bucket": "Bucket", "jobs_table": "JobsTable", "state_machine": "StateMachine"}
"""Field -> what the stack calls it."""


class NotThere(ClusterError):
    """No such stack, no such job, or no way to ask."""


@dataclass(frozen=True)
class Account:
    """Which AWS is asked. `endpoint_url`: None for AWS itself."""

    endpoint_url: str | None = None
    region: str | None = None

    def client(self, service: str) -> Any:
        config = Config(connect_timeout=10, read_timeout=60, retries={"mode": "standard", "max_attempts": 3})
        return self._session.client(service, endpoint_url=self.endpoint_url, config=config)

    @property
    def price_note(self) -> str:
        """Empty where the price table is its region's."""
        return price_note(self.region or self._session.region_name)

    def table(self, name: str) -> Any:
        return self._session.resource("dynamodb", endpoint_url=self.endpoint_url).Table(name)

    @property
    def _session(self) -> Any:
        return boto3.Session(region_name=self.region)


@dataclass(frozen=True)
class Deployment:
    """One stack and where its things are. Clients are made once and kept."""

    account: Account
    name: str
    bucket: str
    jobs_table: str
    state_machine: str

    @classmethod
    def find(cls, account: Account, name: str = DEFAULT_NAME) -> "Deployment":
        """Raises NotThere if there is none, or AWS cannot be asked."""
        try:
            (found,) = account.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
        except ClientError as error:
            raise NotThere(
                f"no stack {name!r} is there", why=said_by(error), fix="cdk deploy, or name another one with --stack"
            ) from None
        except BotoCoreError as error:
            raise NotThere("AWS cannot be asked", why=str(error), fix="dorylus doctor says what is missing") from None
        outputs = {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", ())}
        missing = [key for key in OUTPUTS.values() if key not in outputs]
        if missing:
            raise NotThere(
                f"stack {name!r} is no deployment of this program",
                why=f"it has no output {', '.join(missing)}",
                fix="cdk deploy, or name another one with --stack",
            )
        return cls(account, name, **{field: outputs[key] for field, key in OUTPUTS.items()})

    @cached_property
    def s3(self) -> Any:
        return self.account.client("s3")

    @cached_property
    def jobs(self) -> Any:
        """The table of jobs."""
        return self.account.table(self.jobs_table)

    @property
    def log_group(self) -> str:
        return f"/{self.name}/servers"


def said_by(error: ClientError) -> str:
    """AWS's own words."""
    told = error.response["Error"]
    return f"{told.get('Code', 'error')}: {told.get('Message', '')}"

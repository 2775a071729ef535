"""The stack that `cdk deploy` made, as this machine finds it: by its name, in the account that the credentials name."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from common.errors import ClusterError
from common.pricing import price_note, prices_of
from local_cloud.costs import Site

DEFAULT_NAME = "dorylus"
OUTPUTS = {"bucket": "Bucket", "jobs_table": "JobsTable", "state_machine": "StateMachine"}
"""Field -> what the stack calls it."""
ENDPOINTS, FUNCTIONS = "PrivateEndpoints", "FunctionArchitecture"
"""Outputs too: what is billed of the deployer's choices."""


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
        return price_note(self.where)

    @property
    def where(self) -> str | None:
        """The region; None if nothing says it."""
        found: str | None = self.region or self._session.region_name
        return found

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
    site: Site

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
        texts = {field: outputs[key] for field, key in OUTPUTS.items()}
        return cls(account, name, site=_site(account, outputs), **texts)

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


def _site(account: Account, outputs: Mapping[str, str]) -> Site:
    """A stack of an earlier version does not say: it is taken for one of the defaults."""
    return Site(
        region=prices_of(account.where).region,
        functions="x86_64" if outputs.get(FUNCTIONS) == "x86_64" else "arm64",
        endpoints=int(outputs.get(ENDPOINTS, 0)),
    )


def said_by(error: ClientError) -> str:
    """AWS's own words."""
    told = error.response["Error"]
    return f"{told.get('Code', 'error')}: {told.get('Message', '')}"

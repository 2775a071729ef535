"""What the commands that speak to an AWS account share: which account, which stack, and how a job is shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    # For their types alone: AWS's client takes a second to load.
    from local_cloud.account.deployment import Account, Deployment
    from local_cloud.account.jobs import JobStatus

Command = TypeVar("Command", bound=Callable[..., object])


def of_an_account(command: Command) -> Command:
    """The flags that say which deployment is meant."""
    options = (
        click.option("--stack", default="dorylus", envvar="DORYLUS_STACK", help="Name of the deployment.  [dorylus]"),
        click.option("--region", default=None, help="AWS region.  [that of the AWS configuration]"),
        click.option("--endpoint-url", default=None, help="Ask this instead of AWS.  [AWS]"),
    )
    for option in reversed(options):
        command = option(command)
    return command


def account_of(region: str | None, endpoint_url: str | None) -> Account:
    from local_cloud.account.deployment import Account

    return Account(endpoint_url, region)


def deployment_of(stack: str, region: str | None, endpoint_url: str | None) -> Deployment:
    from local_cloud.account.deployment import Deployment

    return Deployment.find(account_of(region, endpoint_url), stack)


def job_line(job: JobStatus) -> str:
    began = f"{datetime.fromtimestamp(job.created, UTC):%Y-%m-%d %H:%M}" if job.created else "never began"
    reason = f"  {job.reason.splitlines()[0]}" if job.reason else ""
    return f"{job.job_id:<44} {job.state:<10} {began}{reason}"

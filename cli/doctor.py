"""`dorylus doctor`: is this account ready for a job?"""

from __future__ import annotations

import sys

import click

from cli.account import account_of, of_an_account
from cli.failures import ERROR, in_words


@click.command
@of_an_account
def doctor(stack: str, region: str | None, endpoint_url: str | None) -> None:
    """Look at credentials, the deployment, its functions, quotas and endpoints; say what to do about what is not well.

    Exit code 1 if anything is not."""
    from local_cloud.account.doctor import examine

    all_well = True
    with in_words(interrupted="stopped"):
        for check in examine(account_of(region, endpoint_url), stack):
            all_well = all_well and check.is_well
            click.echo(f"{'ok ' if check.is_well else 'NO '} {check.what:<28} {check.found}")
            if check.fix:
                click.echo(f"    {'':<28} {check.fix}")
    sys.exit(0 if all_well else ERROR)

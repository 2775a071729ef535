"""`dorylus submit SPEC`: hand a job to the deployment in an AWS account, and watch it if wanted."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.account import deployment_of, job_line, of_an_account
from cli.failures import ERROR, STOPPED, in_words

if TYPE_CHECKING:
    from local_cloud.account.deployment import Deployment
    from local_cloud.account.jobs import JobStatus

LOOK_AGAIN_SECONDS = 3.0


@click.command
@click.argument("spec", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--watch", is_flag=True, help="Stay until the job is over, and say how it goes.")
@of_an_account
def submit(spec: Path, watch: bool, stack: str, region: str | None, endpoint_url: str | None) -> None:
    """Upload a job spec: the deployment checks it, starts its servers, trains, and ends them.

    A bad spec is refused here, before anything is uploaded. Ctrl-C ends the watching, not the job."""
    from local_cloud.account.submit import find_job
    from local_cloud.account.submit import submit as hand_in

    with in_words(interrupted="the job goes on; dorylus status says how"):
        deployment = deployment_of(stack, region, endpoint_url)
        submitted = hand_in(deployment, spec)
        for note in (*submitted.notes, *filter(None, [deployment.account.price_note])):
            click.echo(f"note: {note}", err=True)
        job = find_job(deployment, submitted)
        click.echo(job_line(job))
        if watch:
            job = _watch(deployment, job)
    if job.reason:
        click.echo(job.reason, err=True)
    sys.exit({"Failed": ERROR, "Stopped": STOPPED}.get(job.state.value, 0))


def _watch(deployment: Deployment, job: JobStatus) -> JobStatus:
    """A line whenever its state changes, and one for each epoch."""
    from local_cloud.account.jobs import metrics, status

    said = 0
    while not job.state.is_final:
        time.sleep(LOOK_AGAIN_SECONDS)
        before, job = job, status(deployment, job.job_id)
        for epoch in (ended := metrics(deployment, job.job_id))[said:]:
            click.echo("  ".join(f"{name} {value}" for name, value in epoch.items()))
        said = len(ended)
        if job.state != before.state:
            click.echo(job_line(job))
    return job

"""`dorylus status`, `list`, `stop`, `download` and `logs`: jobs that a deployment has taken."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cli.account import deployment_of, job_line, of_an_account
from cli.failures import in_words


@click.command
@click.argument("job_id")
@click.option("--json", "as_json", is_flag=True, help="Print the job's record as JSON.")
@of_an_account
def status(job_id: str, as_json: bool, stack: str, region: str | None, endpoint_url: str | None) -> None:
    """Say how a job is: Pending, Starting, Training, Stopping, Completed, Failed or Stopped, and why."""
    from local_cloud.account.jobs import status as look

    with in_words(interrupted="stopped"):
        job = look(deployment_of(stack, region, endpoint_url), job_id)
    if as_json:
        seen = {"job_id": job.job_id, "state": job.state, "failure_reason": job.reason, **(job.record or {})}
        click.echo(json.dumps(seen, indent=2, default=str))
        return
    click.echo("\n".join([job_line(job), *(f"note: {note}" for note in job.notes)]))
    if "\n" in job.reason:
        click.echo(job.reason)


@click.command("list")
@of_an_account
def list_(stack: str, region: str | None, endpoint_url: str | None) -> None:
    """All jobs of the deployment, the newest first."""
    from local_cloud.account.jobs import list_jobs

    with in_words(interrupted="stopped"):
        found = list_jobs(deployment_of(stack, region, endpoint_url))
    click.echo("\n".join(job_line(job) for job in found) or "no jobs yet: dorylus submit job.yaml")


@click.command
@click.argument("job_id")
@of_an_account
def stop(job_id: str, stack: str, region: str | None, endpoint_url: str | None) -> None:
    """Ask a job to end at its next pause, with everything it has reached written."""
    from local_cloud.account.jobs import stop as ask

    with in_words(interrupted="stopped"):
        ask(deployment_of(stack, region, endpoint_url), job_id)
    click.echo(f"{job_id} is asked to stop; dorylus status {job_id} says when it has")


@click.command
@click.argument("job_id")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), required=False)
@of_an_account
def download(job_id: str, folder: Path | None, stack: str, region: str | None, endpoint_url: str | None) -> None:
    """Fetch a job's run folder: summary, metrics, weights, predictions. Files that are here already are left."""
    from local_cloud.account.jobs import download as fetch

    into = folder or Path("runs") / job_id
    with in_words(interrupted="stopped; once more goes on"):
        count = 0
        for path in fetch(deployment_of(stack, region, endpoint_url), job_id, into):
            click.echo(str(path))
            count += 1
    click.echo(f"{into}: {count} files fetched")


@click.command
@click.argument("job_id")
@of_an_account
def logs(job_id: str, stack: str, region: str | None, endpoint_url: str | None) -> None:
    """What the job's servers have logged."""
    from local_cloud.account.logs import job_logs

    with in_words(interrupted="stopped"):
        for line in job_logs(deployment_of(stack, region, endpoint_url), job_id):
            click.echo(f"{line.when:%H:%M:%S} {line.role:<12} {line.text}")

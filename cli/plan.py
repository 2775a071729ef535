"""`dorylus plan [TARGET]`: what a training would need and cost on AWS, before anything is started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cli.account import deployment_of
from cli.failures import in_words
from cli.plan_text import plan_lines
from cli.progress import Phases
from cli.settings import GroupedCommand, cache_dir_option, setting_options, typed
from common.pricing import price_note, prices_of

if TYPE_CHECKING:
    from local_cloud.costs import Site

HELP = """Say what a training would need and cost on AWS; nothing is started.

TARGET is what dorylus train takes: a job spec, a bundled dataset, or a dataset. It is read and cut as for a training.
Memory, bytes and arithmetic are counted; seconds and dollars are estimates, with their range."""


def _plan(target: str | None, cache_dir: Path | None, as_json: bool, stack: str | None, **settings: object) -> None:
    # Here, not above: the machinery takes a second to load, and --help needs none of it.
    from graph_server.graph.cache import default_cache_dir
    from local_cloud.load_job import load_job, need_a_target
    from local_cloud.plan.plan import plan_job
    from local_cloud.prepare import prepare_job

    with in_words(interrupted="stopped; nothing was started"):
        region, endpoint_url = (_text(settings.pop(name)) for name in ("region", "endpoint_url"))
        site, note = _site(stack, region, endpoint_url)
        flags = typed(settings)
        need_a_target(target, flags)
        spec, cache = load_job(target, flags, Path.cwd()).spec, cache_dir or default_cache_dir()
        plan = plan_job(prepare_job(spec, base_folder=Path.cwd(), cache_dir=cache, observer=Phases()), site)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(plan), indent=2).decode())
    else:
        click.echo("\n".join(plan_lines(plan)))
    if note:
        click.echo(f"note: {note}", err=True)


def _site(stack: str | None, region: str | None, endpoint_url: str | None) -> tuple[Site, str]:
    """Where it would run, and whose prices it is told in. AWS is asked only if a stack is named."""
    from local_cloud.costs import Site

    if stack is not None:
        found = deployment_of(stack, region, endpoint_url)
        return found.site, found.account.price_note
    region = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return Site(region=prices_of(region).region), price_note(region)


def _text(given: object) -> str | None:
    return None if given is None else str(given)


plan = GroupedCommand(
    "plan",
    callback=_plan,
    help=HELP,
    params=[
        click.Argument(["target"], required=False),
        cache_dir_option(),
        click.Option(["--json", "as_json"], is_flag=True, help="Print everything as JSON."),
        click.Option(["--stack"], help="Count what this deployment has: its private endpoints, its functions."),
        click.Option(
            ["--region"], help="AWS region.  [that of the environment; with --stack, of the AWS configuration]"
        ),
        click.Option(["--endpoint-url"], help="With --stack: ask this instead of AWS."),
        *setting_options(),
    ],
)

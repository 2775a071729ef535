"""`dorylus plan [TARGET]`: what a training would need and cost on AWS, before anything is started."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec

from cli.failures import in_words
from cli.plan_text import plan_lines
from cli.progress import Phases
from cli.settings import GroupedCommand, cache_dir_option, setting_options, typed
from common.pricing import price_note

HELP = """Say what a training would need and cost on AWS; nothing is started.

TARGET is what dorylus train takes: a job spec, a bundled dataset, or a dataset. It is read and cut as for a training.
Memory, bytes and arithmetic are counted; seconds and dollars are estimates, with their range."""


def _plan(target: str | None, cache_dir: Path | None, as_json: bool, **settings: object) -> None:
    # Here, not above: the machinery takes a second to load, and --help needs none of it.
    from graph_server.graph.cache import default_cache_dir
    from local_cloud.load_job import load_job, need_a_target
    from local_cloud.plan.plan import plan_job
    from local_cloud.prepare import prepare_job

    with in_words(interrupted="stopped; nothing was started"):
        flags = typed(settings)
        need_a_target(target, flags)
        spec, cache = load_job(target, flags, Path.cwd()).spec, cache_dir or default_cache_dir()
        plan = plan_job(prepare_job(spec, base_folder=Path.cwd(), cache_dir=cache, observer=Phases()))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(plan), indent=2).decode())
    else:
        click.echo("\n".join(plan_lines(plan)))
    if note := price_note(os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        click.echo(f"note: {note}", err=True)


plan = GroupedCommand(
    "plan",
    callback=_plan,
    help=HELP,
    params=[
        click.Argument(["target"], required=False),
        cache_dir_option(),
        click.Option(["--json", "as_json"], is_flag=True, help="Print everything as JSON."),
        *setting_options(),
    ],
)

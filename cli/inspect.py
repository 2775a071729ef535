"""`dorylus inspect PATH`: what a dataset holds, what is wrong with it, and whether a training would start."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from cli.failures import ERROR, in_words
from cli.settings import GroupedCommand, setting_options, typed

HELP = """Look at a dataset before it is trained on: what it holds, and what is wrong with it.

PATH is what dorylus train takes: a bundled name, a file, a folder or a job spec. Nothing is changed. Labels and
features may be missing.

The exit code is 0 if a training would start, and 1 if it would be refused; the last line says why."""

GROUPS = ("dataset", "model")


def _inspect(path: str, as_json: bool, html: Path | None, **settings: object) -> None:
    # Here, not above: the machinery takes a second to load, and --help needs none of it.
    from cli.inspect_html import diagnosis_page
    from cli.inspect_text import diagnosis_lines
    from local_cloud.inspect import inspect as look_at

    _check_page(html)
    with in_words(interrupted="stopped"):
        diagnosis = look_at(path, typed(settings), Path.cwd())
    if html is not None:
        html.write_text(diagnosis_page(diagnosis), encoding="utf-8")
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(diagnosis), indent=2).decode())
    else:
        click.echo("\n".join(diagnosis_lines(diagnosis)))
    sys.exit(0 if diagnosis.accepted else ERROR)


def _check_page(html: Path | None) -> None:
    """A page replaces the one that is there, so it must bear the name of a page; it could be a dataset otherwise."""
    if html is None:
        return
    if html.suffix not in (".html", ".htm"):
        raise click.UsageError(f"--html {html}: the name of a page ends with .html.")
    if not html.parent.is_dir():
        raise click.UsageError(f"--html {html}: there is no folder {html.parent}.")


inspect = GroupedCommand(
    "inspect",
    callback=_inspect,
    help=HELP,
    params=[
        click.Argument(["path"]),
        click.Option(["--json", "as_json"], is_flag=True, help="Print everything as JSON, alone on stdout."),
        click.Option(["--html"], type=click.Path(path_type=Path), metavar="FILE", help="Also write a page with plots."),
        *setting_options(without={"dataset.path"}, of=GROUPS),
    ],
)

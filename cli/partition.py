"""`dorylus partition IN [OUT]`: cut a graph, within a memory limit if need be, and say what the cut is worth."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli.failures import in_words
from cli.partition_words import report_rows
from cli.settings import GroupedCommand, setting_options, typed

HELP = """Cut a graph into intervals, deal them to graph servers, and say what that costs.

IN is what dorylus train takes: a bundled name, a file, a folder, a graph folder or a job spec. OUT, NAME.dorylus, keeps
the cut as a graph folder, which trains at once. With --memory-limit IN is a folder of Parquet, as dorylus convert and
dorylus generate write it, or of an edge list with features; edges are sorted on disk."""

GROUPS = ("dataset", "cut", "model", "cluster")
NOT_HERE = {"dataset.path", "cluster.max_restarts", "cluster.instance_type", "cluster.spot"}


def _partition(
    source: str, out: Path | None, memory_limit: str | None, as_json: bool, html: Path | None, **settings: object
) -> None:
    # Here, not above: the machinery takes a second to load, and --help needs none of it.
    import msgspec

    from cli.progress import Phases
    from local_cloud.partition import bytes_of
    from local_cloud.partition import partition as cut

    with in_words(interrupted="stopped; nothing was written"):
        limit = None if memory_limit is None else bytes_of(memory_limit)
        report = cut(source, out, typed(settings), Path.cwd(), memory_bytes=limit, observer=Phases())
    if html is not None:
        from cli.partition_html import partition_page

        html.write_text(partition_page(report), encoding="utf-8")
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
        return
    rows = report_rows(report)
    width = max(len(name) for name, _ in rows)
    click.echo("\n".join(f"{name:<{width}}  {value}" for name, value in rows))
    if out is not None and sys.stderr.isatty():
        click.echo(f"hint: dorylus train {out}", err=True)


partition = GroupedCommand(
    "partition",
    callback=_partition,
    help=HELP,
    params=[
        click.Argument(["source"], metavar="IN"),
        click.Argument(["out"], metavar="[OUT]", required=False, type=click.Path(path_type=Path)),
        click.Option(["--memory-limit"], metavar="SIZE", help="Such as 2GB: sort on disk, and hold no more."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the report as JSON, alone on stdout."),
        click.Option(["--html"], type=click.Path(path_type=Path), help="Write a page with plots."),
        *setting_options(without=NOT_HERE, of=GROUPS),
    ],
)

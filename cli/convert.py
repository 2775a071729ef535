"""`dorylus convert IN OUT`: a dataset of any format as Parquet, or as a graph folder that loads at once."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli.failures import in_words
from cli.settings import GroupedCommand, setting_options, typed

HELP = """Write a dataset anew: as Parquet, or as a graph folder that a training maps at once.

IN is what dorylus train takes: a bundled name, a file, a folder or a job spec. The ending of OUT says what to write:
NAME.parquet for a folder with nodes.parquet and edges.parquet, the graph as its file holds it; NAME.dorylus for a graph
folder, with the policies of these flags applied, and cut as a training with these flags would cut it.

OUT must not be there; it appears whole, or not at all. With --memory-limit IN is an edge list or, for a graph folder,
Parquet as dorylus convert and dorylus generate write it; it is read piece by piece, and edges are sorted on disk."""

GROUPS = ("dataset", "cut", "model")


def _convert(source: str, out: Path, memory_limit: str | None, **settings: object) -> None:
    # Here, not above: the machinery takes a second to load, and --help needs none of it.
    from local_cloud.convert import convert as write
    from local_cloud.partition import bytes_of

    if sys.stderr.isatty():
        click.echo("converting ...", err=True)
    with in_words(interrupted="stopped; nothing was written"):
        limit = None if memory_limit is None else bytes_of(memory_limit)
        done = write(source, out, typed(settings), Path.cwd(), memory_bytes=limit)
    for note in done.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(f"{out}: {done.num_nodes:,} vertices, {done.num_edges:,} edges, {done.num_bytes:,} bytes")


convert = GroupedCommand(
    "convert",
    callback=_convert,
    help=HELP,
    params=[
        click.Argument(["source"], metavar="IN"),
        click.Argument(["out"], metavar="OUT", type=click.Path(path_type=Path)),
        click.Option(["--memory-limit"], metavar="SIZE", help="Such as 2GB: read in pieces, and hold no more."),
        *setting_options(without={"dataset.path"}, of=GROUPS),
    ],
)

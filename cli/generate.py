"""`dorylus generate OUT`: a made-up graph of any size, whose labels can be learnt."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from cli.failures import in_words

HELP = """Make up a graph: the same seed gives the same graph, of any size, in little memory.

OUT is NAME.parquet, a folder that must not be there. blocks is a degree-corrected stochastic block model, whose
communities a cut can find; in a ring each of them has edges to the next one only; rmat is R-MAT, whose edges no cut can
tear apart well. Features and neighbours tell the label. Edges are drawn in one direction; messages flow both ways, and
repeats count once."""


def _generate(out: Path, **values: object) -> None:
    # Here, not above: the machinery takes a second to load, and --help needs none of it.
    import msgspec

    from common.errors import SpecError
    from graph_server.generate.recipe import Recipe
    from graph_server.generate.write import generate as write
    from graph_server.ingest.write_parquet import SUFFIX

    if sys.stderr.isatty():
        click.echo("drawing ...", err=True)
    with in_words(interrupted="stopped; nothing was written"):
        if out.suffix != SUFFIX:
            raise SpecError(
                f"{out} is the name of no format that is written",
                why="a made-up graph is written as tables",
                fix=f"name it {out.stem}{SUFFIX}",
            )
        recipe = msgspec.convert(values, Recipe)
        write(recipe, out)
    size = sum(file.stat().st_size for file in out.iterdir())
    click.echo(f"{out}: {recipe.num_vertices:,} vertices, {recipe.num_edges:,} edges drawn, {size:,} bytes")


generate = click.Command(
    "generate",
    callback=_generate,
    help=HELP,
    params=[
        click.Argument(["out"], metavar="OUT", type=click.Path(path_type=Path)),
        click.Option(["--kind"], type=click.Choice(["blocks", "ring", "rmat"]), default="blocks", show_default=True),
        click.Option(["--num-vertices"], type=int, default=100_000, show_default=True),
        click.Option(["--num-edges"], type=int, default=1_000_000, show_default=True),
        click.Option(["--num-classes"], type=int, default=16, show_default=True),
        click.Option(["--num-features"], type=int, default=64, show_default=True),
        click.Option(["--num-blocks"], type=int, help="Communities of blocks. [default: of about 2000 vertices]"),
        click.Option(
            ["--inside"], type=float, default=0.8, show_default=True, help="Share of edges that stay in their block."
        ),
        click.Option(
            ["--signal"],
            type=float,
            default=0.5,
            show_default=True,
            help="How far the features of the labels lie apart, in deviations of the noise.",
        ),
        click.Option(["--train"], type=float, default=0.6, show_default=True, help="Share of vertices that train."),
        click.Option(
            ["--valid"], type=float, default=0.2, show_default=True, help="Share that chooses; the rest tests."
        ),
        click.Option(["--seed"], type=int, default=0, show_default=True),
    ],
)

"""`dorylus explain MODEL`: the stage program that is derived from a model, and what it costs on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from cli.explain_text import cost_lines, explanation_lines
from cli.failures import in_words
from cli.progress import Phases
from cli.settings import GroupedCommand, cache_dir_option, setting_options, typed

if TYPE_CHECKING:
    from common.resolve_spec import Layer
    from local_cloud.explain import Explanation
    from local_cloud.explain_cost import ProgramCost

HELP = """Print the stage program that is derived from MODEL, step by step.

With --dataset also the bytes and the arithmetic of each step, and what one train pass moves. The paper's own program:
--no-hoist --no-commute. Without MODEL: the models there are."""

GROUPS = ("dataset", "cut", "model", "training", "cluster", "backend")


def _explain(model: str | None, cache_dir: Path | None, cost: bool, as_json: bool, **settings: object) -> None:
    from local_cloud.explain import model_names

    if model is None:
        click.echo("\n".join(["models:", *(f"  {name}" for name in model_names()), "explain one: dorylus explain gcn"]))
        return
    with in_words(interrupted="stopped"):
        flags = typed(settings, model__name=model)
        found = _costs(flags, cache_dir) if cost else _explained(flags, cache_dir)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        click.echo("\n".join(cost_lines(found) if isinstance(found, tuple) else explanation_lines(found)))


def _costs(flags: Layer, cache_dir: Path | None) -> tuple[ProgramCost, ...]:
    from graph_server.graph.cache import default_cache_dir
    from local_cloud.explain_cost import explain_costs

    if "dataset" not in flags.values:
        raise click.UsageError("--cost counts a graph's vertices and edges: name one with --dataset.")
    cache = cache_dir or default_cache_dir()
    return explain_costs(flags, base_folder=Path.cwd(), cache_dir=cache, observer=Phases())


def _explained(flags: Layer, cache_dir: Path | None) -> Explanation:
    from graph_server.graph.cache import default_cache_dir
    from local_cloud.explain import explain_dataset, explain_letters

    if "dataset" not in flags.values:
        return explain_letters(flags)
    cache = cache_dir or default_cache_dir()
    return explain_dataset(flags, base_folder=Path.cwd(), cache_dir=cache, observer=Phases())


explain = GroupedCommand(
    "explain",
    callback=_explain,
    help=HELP,
    params=[
        click.Argument(["model"], required=False),
        cache_dir_option(),
        click.Option(
            ["--cost"],
            is_flag=True,
            help="What an epoch costs by the paper's program, and what hoist and commute save.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print everything as JSON."),
        *setting_options(without={"model.name"}, of=GROUPS),
    ],
)

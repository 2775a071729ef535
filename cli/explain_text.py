"""An explanation as lines: the program, a table of its steps, and what one training pass moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # For their types alone: what makes an explanation takes seconds to load.
    from local_cloud.explain import ExplainedStep, Explanation, Tensor
    from local_cloud.explain_cost import ProgramCost
    from local_cloud.payload import Computers, GraphCounts, PassPayload


def explanation_lines(explanation: Explanation) -> list[str]:
    lines = [f"{explanation.model}, {explanation.num_layers} layers", "", explanation.program, ""]
    lines += _step_table(explanation.steps)
    if explanation.payload is not None and explanation.graph is not None:
        lines += ["", *_pass_lines(explanation.payload, explanation.graph, explanation.computers)]
        lines += ["", *_link_lines(explanation.links or {}, explanation.payload, explanation.computers)]
    return [*lines, "", *explanation.notes] if explanation.notes else lines


def cost_lines(costs: Sequence[ProgramCost]) -> list[str]:
    """A row per program; beside each number, what it is of the paper's."""
    names = ("flops", "edge_bytes", "row_bytes", "ghost_bytes")
    heads = ("Mflop", "MB of edges", "MB of rows", "MB of ghosts")
    lines = [f"{'one training epoch':<18} " + " ".join(f"{head:>20}" for head in heads)]
    for cost in costs:
        numbers = [(getattr(cost, name), getattr(costs[0], name)) for name in names]
        cells = [f"{number / 1e6:,.2f}{_share(number, whole):>7}" for number, whole in numbers]
        lines.append(f"{cost.name:<18} " + " ".join(f"{cell:>20}" for cell in cells))
    return lines


def _share(number: int, whole: int) -> str:
    return f"{number / whole:.0%}" if whole else ""


def _step_table(steps: Sequence[ExplainedStep]) -> list[str]:
    costed = any(step.cost is not None for step in steps)
    header = ["step", *(["rows in", "rows out", "gradients", "ghosts", "Mflop"] if costed else []), "reads", "writes"]
    table = [header, *(_row(step) for step in steps)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    numbers = range(1, len(header) - 2)
    return [
        "  ".join(
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def _row(step: ExplainedStep) -> list[str]:
    name = f"once: {step.step}" if step.once else step.step
    numbers = []
    if step.cost is not None:
        cost = step.cost
        numbers = [_bytes(n) for n in (cost.rows_in, cost.rows_out, cost.gradients, cost.ghosts)]
        numbers.append(f"{cost.flops / 1e6:,.1f}" if cost.flops else "-")
    return [name, *numbers, _tensors(step.reads), _tensors(step.writes)]


def _pass_lines(payload: PassPayload, graph: GraphCounts, computers: Computers | None) -> list[str]:
    who = "lease" if computers is not None and computers.backend == "lambda" else "graph server"
    evaluated = "fetched by the evaluation before" if payload.weights == 0 else f"each {who} fetches them once"
    rows = [
        ("rows in", payload.rows_in, "read by tensor tasks"),
        ("rows out", payload.rows_out, "given by tensor tasks"),
        ("weights", payload.weights, f"{evaluated}; {payload.weights_per_version:,} for a version"),
        ("gradients", payload.gradients, "of every interval"),
        ("ghosts", payload.ghosts, "from graph server to graph server"),
        ("total", payload.total, ""),
        ("constants", payload.constants, "apart: they move once"),
    ]
    of_what = f"{_count(len(graph.intervals_per_server), 'graph server')}, {_count(graph.num_intervals, 'interval')}"
    of_what += f"; {graph.num_nodes:,} vertices, {graph.num_edges:,} {graph.weighted * 'weighted '}edges"
    lines = [f"payload of one train pass, in bytes ({of_what})"]
    lines += [f"  {name:<10} {number:>15,}  {about}".rstrip() for name, number, about in rows]
    return [*lines, f"arithmetic of one train pass: {payload.flops / 1e6:,.1f} Mflop"]


def _link_lines(links: Mapping[str, int], payload: PassPayload, computers: Computers | None) -> list[str]:
    if computers is None:
        return []
    away = computers.backend == "lambda"
    where = f"lambda, {_count(computers.count, 'lease')}" if away else f"{computers.backend}, rows stay where they lie"
    once = {"graph_lambda": f"and {payload.constants:,} of constants, once"} if away else {}
    rows = [(link.replace("_", "-"), number, once.get(link, "")) for link, number in links.items() if number]
    lines = [f"of it by link, in bytes ({where})"]
    return lines + [f"  {name:<16} {number:>15,}  {about}".rstrip() for name, number, about in rows]


def _tensors(tensors: Sequence[Tensor]) -> str:
    return ", ".join(f"{tensor.name} [{tensor.width}]" for tensor in tensors) or "-"


def _bytes(number: int) -> str:
    return f"{number:,}" if number else "-"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

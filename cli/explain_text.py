"""An explanation as lines: the program, a table of its steps, and what one training pass moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # For their types alone: what makes an explanation takes seconds to load.
    from local_cloud.explain import ExplainedStep, Explanation, Tensor
    from local_cloud.payload import GraphCounts, PassPayload


def explanation_lines(explanation: Explanation) -> list[str]:
    lines = [f"{explanation.model}, {explanation.num_layers} layers", "", explanation.program, ""]
    lines += _step_table(explanation.steps)
    if explanation.payload is not None and explanation.graph is not None:
        lines += ["", *_pass_lines(explanation.payload, explanation.graph, explanation.num_graph_servers or 1)]
    return [*lines, "", *explanation.notes] if explanation.notes else lines


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


def _pass_lines(payload: PassPayload, graph: GraphCounts, num_graph_servers: int) -> list[str]:
    evaluated = "fetched by the evaluation before" if payload.weights == 0 else "each graph server fetches them once"
    rows = [
        ("rows in", payload.rows_in, "read by tensor tasks"),
        ("rows out", payload.rows_out, "given by tensor tasks"),
        ("weights", payload.weights, f"{evaluated}; {payload.weights_per_version:,} for a version"),
        ("gradients", payload.gradients, "of every interval"),
        ("ghosts", payload.ghosts, "from graph server to graph server"),
        ("total", payload.total, ""),
        ("constants", payload.constants, "apart: they move once"),
    ]
    of_what = f"{_count(num_graph_servers, 'graph server')}, {_count(graph.num_intervals, 'interval')}"
    of_what += f"; {graph.num_nodes:,} vertices, {graph.num_edges:,} edges"
    lines = [f"payload of one train pass, in bytes ({of_what})"]
    lines += [f"  {name:<10} {number:>15,}  {about}".rstrip() for name, number, about in rows]
    return [*lines, f"arithmetic of one train pass: {payload.flops / 1e6:,.1f} Mflop"]


def _tensors(tensors: Sequence[Tensor]) -> str:
    return ", ".join(f"{tensor.name} [{tensor.width}]" for tensor in tensors) or "-"


def _bytes(number: int) -> str:
    return f"{number:,}" if number else "-"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

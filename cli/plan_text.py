"""A plan as lines: memory, bytes by link, whether Lambda pays, and a table of options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # For their types alone: what makes a plan takes seconds to load.
    from local_cloud.plan.plan import Between, Option, Plan


def plan_lines(plan: Plan) -> list[str]:
    graph = plan.graph
    edges = f"{graph.num_edges:,} {graph.weighted * 'weighted '}edges"
    head = f"{plan.name}: {plan.model} on {graph.num_nodes:,} vertices, {edges}"
    return [
        f"{head}; {len(plan.memory_bytes)} x {plan.instance_type}, {plan.num_epochs} epochs",
        "",
        *_memory_lines(plan),
        "",
        *_link_lines(plan),
        "",
        plan.verdict,
        "",
        *_option_lines(plan.options, plan.prices_of),
        "",
        *plan.notes,
    ]


def _memory_lines(plan: Plan) -> list[str]:
    most, box = max(plan.memory_bytes), plan.box_memory_bytes
    return [
        "memory",
        f"  graph server      {_gb(most):>9} at the most, of {_gb(box)} ({most / box:.0%})",
        f"  parameter server  {_gb(plan.parameter_server_bytes):>9}",
    ]


def _link_lines(plan: Plan) -> list[str]:
    lines = [f"one epoch: {plan.flops / 1e9:,.1f} Gflop of tensor work, and in bytes"]
    names = [name for name in plan.links["lambda"] if any(links[name] for links in plan.links.values())]
    lines.append(f"  {'':<16} {'local_cpu':>16} {f'lambda, {plan.leases} leases':>20}")
    for name in names:
        here, away = plan.links["local_cpu"][name], plan.links["lambda"][name]
        lines.append(f"  {name.replace('_', '-'):<16} {here:>16,} {away:>20,}")
    return lines


def _option_lines(options: Sequence[Option], prices_of: str) -> list[str]:
    lines = [f"options (prices: {prices_of})"]
    lines.append(f"  {'instance':<14} {'backend':<10} {'market':<10} {'s per epoch':>15} {'hours':>15} {'USD':>15}")
    for option in options:
        market, hours = "spot" if option.spot else "on demand", tuple(s / 3600 for s in option.seconds)
        numbers = " ".join(f"{_between(each):>15}" for each in (option.epoch_seconds, hours, option.usd))
        short = "" if option.fits else "  too little memory"
        lines.append(f"  {option.instance_type:<14} {option.backend:<10} {market:<10} {numbers}{short}")
    return lines


def _between(of: Between | Sequence[float]) -> str:
    low, high = of
    return f"{_short(low)} - {_short(high)}"


def _short(number: float) -> str:
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"


def _gb(number: int) -> str:
    return f"{number / 1e9:.1f} GB"

"""Scatter and ∇Scatter: publish an interval's rows for the Gathers, here and on the graph servers that hold them as
ghosts. Rows are scaled by their owner, so a ghost needs no degree; a repeat publishes the same rows again.
"""

from dataclasses import dataclass

import numpy as np

from common.passes import Pass
from common.saga.arrays import Array
from common.saga.cost import is_rounded
from common.saga.gathers import AttentionSum
from common.saga.program import Step
from graph_server.graph.bfloat16 import to_bfloat16
from graph_server.stages.held import Held


@dataclass(frozen=True)
class Outgoing:
    """One interval's rows for one graph server, in the order of their ids: both sides know which they are."""

    peer: int
    table: str
    block: Array


def scatter_rows(held: Held, pass_: Pass, step: Step, interval: int) -> Array:
    """Publish here; returns the block [rows, sent width]."""
    block = _published(held, pass_, step, interval)
    if is_rounded(held.programs.model, step.writes[0]):
        block = to_bfloat16(block)
    held.store.publish(pass_, step.writes[0], interval, block)
    return block


def outgoing(held: Held, step: Step, interval: int, block: Array) -> list[Outgoing]:
    sends = held.edges(backward=step.backward).sends.get(interval, {})
    return [Outgoing(peer, step.writes[0], block[rows]) for peer, rows in sorted(sends.items())]


def _published(held: Held, pass_: Pass, step: Step, interval: int) -> Array:
    n, gather = step.layer, held.layer(step).gather
    rows = held.store.rows(pass_, step.reads[0], interval)
    if isinstance(gather, AttentionSum):
        if not step.backward:
            return rows[:, : gather.width + gather.heads]
        return _attention_gradients(held, pass_, gather, n, interval)
    factors = held.factors[n]
    return rows * (factors.post if step.backward else factors.pre)[held.partition.rows[interval]]


def _attention_gradients(held: Held, pass_: Pass, gather: AttentionSum, n: int, interval: int) -> Array:
    """[g | g·out | t | logsumexp]: with these the source of an edge recomputes the edge's value itself."""
    own = {name: held.store.rows(pass_, f"{name}{n}", interval) for name in ("grad_gathered", "gathered", "projected")}
    per_head = (len(own["gathered"]), gather.heads, gather.head_width)
    dot = (own["grad_gathered"].reshape(per_head) * own["gathered"].reshape(per_head)).sum(axis=2)
    saved = held.store.rows(pass_, f"saved{n}", interval)
    t, logsumexp = own["projected"][:, gather.width + gather.heads :], saved[:, gather.width + gather.heads :]
    return np.hstack([own["grad_gathered"], dot, t, logsumexp])

"""Gathers: what a vertex computes over its in-edges, and, backward, over its out-edges. Declarations; kernels are the
graph server's.

With w the weight of an edge, 1 where edges have none, and d(x) = the sum of w over x's in-edges, which then is the
in-degree with multiplicity; self loops included where the gather adds them, with w = 1:

WeightedSum   out_v = post_v · sum over in-edges (u, v) of w_uv · pre_u · x_u
              sym   pre = post = d^-1/2        mean   pre = 1, post = 1/d        sum   pre = post = 1      (d = 0: 0)
              backward over out-edges, the two factors change places.
AttentionSum  out_v = sum over in-edges of softmax_u(leaky(s_u + t_v)) · m_uv · z_u, with source rows [z | s | t].
              Weights have no place in it.

Self loops are implicit, last in the sum, and added only where the graph has none. Sources: Kipf & Welling 2017,
Hamilton et al. 2017, Xu et al. 2019, Velickovic et al. 2018.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class WeightedSum:
    norm: Literal["sym", "mean", "sum"]
    self_loops: bool = False

    def gathered_width(self, source: int) -> int:
        return source

    def saved_width(self, source: int) -> int:
        """What the backward stages need of this Gather besides its output."""
        return 0

    def sent_width(self, source: int, *, backward: bool) -> int:
        """Width of a published row: what a ghost is."""
        return source


@dataclass(frozen=True)
class AttentionSum:
    """`heads` heads of `head_width`. Published rows: forward [z | s], backward [g | g·out | t | logsumexp].

    Saved for the backward stages: [q | q1 | logsumexp], q = sum of m · α · leaky' · z and q1 = sum of α · leaky':
    with them the gradient of t is the vertex's own, g·q - (g·out) · q1, without another walk over the in-edges.
    """

    heads: int
    head_width: int
    dropout: float = 0.0
    self_loops: bool = True

    @property
    def width(self) -> int:
        return self.heads * self.head_width

    def gathered_width(self, source: int) -> int:
        return self.width

    def saved_width(self, source: int) -> int:
        return self.width + 2 * self.heads

    def sent_width(self, source: int, *, backward: bool) -> int:
        return self.width + (3 if backward else 1) * self.heads


Gather = WeightedSum | AttentionSum


@dataclass(frozen=True)
class AdditiveScore:
    """ApplyEdge of attention: leaky(s_u + t_v), with this slope below zero."""

    slope: float = 0.2

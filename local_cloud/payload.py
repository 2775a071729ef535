"""What one train pass moves and computes, predicted from declared widths and from counts of the graph.

Payload is what a trace adds up for a pass without repeats: raw row, weight and gradient buffers. Headers are not in it,
and neither are constants, which move once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from common.saga.cost import row_bytes, step_cost
from common.saga.layer import Model
from common.saga.program import Kind, Programs, Step


@dataclass(frozen=True)
class GraphCounts:
    """Of one graph as it is cut and dealt."""

    num_nodes: int
    num_edges: int
    num_without_loop: int
    """Vertices without an edge to themselves: they get one where a Gather adds self loops."""
    num_intervals: int
    num_owners: int
    """Graph servers that own intervals."""
    num_ghosts: int
    """Over all graph servers, of a Gather."""
    num_backward_ghosts: int
    """Of a ∇Gather; another number only on a directed graph."""


@dataclass(frozen=True)
class StepPayload:
    """Bytes, of all intervals; flops as in `step_cost`."""

    rows_in: int
    rows_out: int
    gradients: int
    ghosts: int
    flops: int


@dataclass(frozen=True)
class PassPayload:
    """Bytes of one train pass after the first."""

    rows_in: int
    rows_out: int
    weights: int
    """0 if an evaluation has just fetched the version this pass reads."""
    gradients: int
    ghosts: int
    constants: int
    """Moved once per job, not in every pass."""
    weights_per_version: int
    """A version is fetched once by each graph server that owns intervals, whatever pass asks first."""
    flops: int

    @property
    def total(self) -> int:
        return self.rows_in + self.rows_out + self.weights + self.gradients + self.ghosts


def predict_step(programs: Programs, step: Step, counts: GraphCounts) -> StepPayload:
    model, cost = programs.model, step_cost(programs.model, step)
    reads = [name for name in step.reads if name not in programs.constants] if step.kind is Kind.APPLY else []
    ghosts = counts.num_backward_ghosts if step.backward else counts.num_ghosts
    loops = counts.num_without_loop if model.layers[step.layer].gather.self_loops else 0
    return StepPayload(
        rows_in=counts.num_nodes * sum(row_bytes(model, name) for name in reads),
        rows_out=counts.num_nodes * cost.bytes_out_per_vertex,
        gradients=counts.num_intervals * cost.gradient_bytes,
        ghosts=ghosts * cost.bytes_per_ghost,
        flops=counts.num_nodes * cost.flops_per_vertex + (counts.num_edges + loops) * cost.flops_per_edge,
    )


def predict_payload(programs: Programs, counts: GraphCounts, *, every_version_is_evaluated: bool) -> PassPayload:
    """The sum over the steps of `train e`, e >= 2."""
    steps = [predict_step(programs, step, counts) for step in programs.train.steps]
    fetched = counts.num_owners * _weight_bytes(programs.model)
    return PassPayload(
        rows_in=sum(step.rows_in for step in steps),
        rows_out=sum(step.rows_out for step in steps),
        weights=0 if every_version_is_evaluated else fetched,
        gradients=sum(step.gradients for step in steps),
        ghosts=sum(step.ghosts for step in steps),
        constants=_constants(programs, programs.train.steps, counts.num_nodes),
        weights_per_version=fetched,
        flops=sum(step.flops for step in steps),
    )


def _constants(programs: Programs, steps: Sequence[Step], num_nodes: int) -> int:
    read = {name for step in steps if step.kind is Kind.APPLY for name in step.reads}
    return num_nodes * sum(row_bytes(programs.model, name) for name in read & programs.constants)


def _weight_bytes(model: Model) -> int:
    # A task gets all parameters of the version, not only those it reads.
    sizes = [parameter.shape for parameter in model.parameters()]
    total = 0
    for shape in sizes:
        size = 4
        for n in shape:
            size *= n
        total += size
    return total

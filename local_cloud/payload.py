"""What a train pass, or a whole run, moves and computes, predicted from declared widths and from counts of the graph.

Payload is what a trace adds up for a pass without repeats: raw row, weight and gradient buffers. Headers are not in it,
nor constants, which move once, nor rows that a metric ranks, which an evaluation sends to parameter server 0. Of a run
it is what the links of its summary bear, if nothing was repeated, relaunched or lost.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from common.saga.cost import row_bytes, step_cost
from common.saga.layer import Model
from common.saga.program import Kind, Programs, Step
from common.wire.clients import KEPT_WEIGHTS


@dataclass(frozen=True)
class GraphCounts:
    """Of one graph as it is cut and dealt."""

    num_nodes: int
    num_edges: int
    num_without_loop: int
    """Vertices without an edge to themselves: they get one where a Gather adds self loops."""
    num_intervals: int
    intervals_per_server: tuple[int, ...]
    num_ghosts: int
    """Over all graph servers, of a Gather."""
    num_backward_ghosts: int
    """Of a ∇Gather; another number only on a directed graph."""
    weighted: bool = False
    """Every edge multiplies the row it passes on."""

    @property
    def num_owners(self) -> int:
        """Graph servers that own intervals."""
        return sum(count > 0 for count in self.intervals_per_server)


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
    """A version is fetched once by each of those who compute, whatever pass asks first."""
    flops: int

    @property
    def total(self) -> int:
        return self.rows_in + self.rows_out + self.weights + self.gradients + self.ghosts


def predict_step(programs: Programs, step: Step, counts: GraphCounts) -> StepPayload:
    model, cost = programs.model, step_cost(programs.model, step)
    reads = [name for name in step.reads if name not in programs.constants] if step.kind is Kind.APPLY else []
    ghosts = counts.num_backward_ghosts if step.backward else counts.num_ghosts
    loops = counts.num_without_loop if model.layers[step.layer].gather.self_loops else 0
    edges = counts.num_edges * (2 if counts.weighted else 1) + loops
    return StepPayload(
        rows_in=counts.num_nodes * sum(row_bytes(model, name) for name in reads),
        rows_out=counts.num_nodes * cost.bytes_out_per_vertex,
        gradients=counts.num_intervals * cost.gradient_bytes,
        ghosts=ghosts * cost.bytes_per_ghost,
        flops=counts.num_nodes * cost.flops_per_vertex + edges * cost.flops_per_edge,
    )


@dataclass(frozen=True)
class Computers:
    """Who runs the tensor tasks: on lambda the leases that own intervals, else the graph servers that do."""

    backend: str
    count: int


@dataclass(frozen=True)
class RunShape:
    """The passes of a run. `best_is_held`: else the last pass fetches the best weights once more."""

    num_epochs: int
    num_evaluations: int
    best_is_held: bool = True

    @classmethod
    def of(cls, num_epochs: int, num_evaluations: int, *, best_version: int | None) -> "RunShape":
        """Of one optimizer step per epoch: who computes still has the newest versions."""
        return cls(num_epochs, num_evaluations, best_version is None or best_version > num_epochs - KEPT_WEIGHTS)


def predict_payload(
    programs: Programs, counts: GraphCounts, computers: Computers, *, every_version_is_evaluated: bool
) -> PassPayload:
    """The sum over the steps of `train e`, e >= 2."""
    steps = [predict_step(programs, step, counts) for step in programs.train.steps]
    fetched = computers.count * _weight_bytes(programs.model)
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


def pass_links(payload: PassPayload, computers: Computers) -> dict[str, int]:
    """The same by link, constants left out."""
    rows = payload.rows_in + payload.rows_out
    return _by_link(computers, ghosts=payload.ghosts, rows=rows, parameters=payload.weights + payload.gradients)


def predict_links(programs: Programs, counts: GraphCounts, computers: Computers, run: RunShape) -> dict[str, int]:
    """Payload of a whole run by link, constants included."""
    train, evaluate, predict = (
        [predict_step(programs, step, counts) for step in program.steps]
        for program in (programs.train, programs.evaluate, programs.predict)
    )
    walked = [(run.num_epochs, train), (run.num_evaluations, evaluate), (1, predict)]
    every_step = [(times, step) for times, steps in walked for step in steps]
    versions = run.num_epochs + 1 + (not run.best_is_held)
    constants = _constants(programs, (*programs.train.steps, *programs.evaluate.steps), counts.num_nodes)
    return _by_link(
        computers,
        ghosts=sum(times * step.ghosts for times, step in every_step),
        rows=constants + sum(times * (step.rows_in + step.rows_out) for times, step in every_step),
        parameters=versions * computers.count * _weight_bytes(programs.model)
        + sum(times * step.gradients for times, step in every_step),
    )


def _by_link(computers: Computers, *, ghosts: int, rows: int, parameters: int) -> dict[str, int]:
    """On its own cores a graph server reads its rows where they lie."""
    away = computers.backend == "lambda"
    return {
        "graph_graph": ghosts,
        "graph_lambda": rows if away else 0,
        "parameter_lambda": parameters if away else 0,
        "parameter_graph": 0 if away else parameters,
    }


def _constants(programs: Programs, steps: Iterable[Step], num_nodes: int) -> int:
    read = {name for step in steps if step.kind is Kind.APPLY for name in step.reads}
    return num_nodes * sum(row_bytes(programs.model, name) for name in read & programs.constants)


def _weight_bytes(model: Model) -> int:
    # A task gets all parameters of the version, not only those it reads.
    return sum(4 * math.prod(parameter.shape) for parameter in model.parameters())

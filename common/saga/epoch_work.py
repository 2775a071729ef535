"""What an epoch has to do, by declared widths and counts of the graph, and the core seconds assumed for it. Pure.

Nothing was measured on the instance types: seconds are an estimate, and lie between 1 / WITHIN and WITHIN times it.
"""

from dataclasses import dataclass

from common.saga.cost import FLOAT_BYTES, row_bytes, step_cost
from common.saga.program import Kind, Programs
from common.saga.tasks import Task

WITHIN = 2.0
"""An estimate may be wrong by this factor, either way: cores differ, and neighbours on them, too."""
FLOPS_PER_CORE = 50e9
"""Of float32 products of the shapes that tensor tasks have, one thread: AVX2 gives 60 to 70, older cores less."""
ROW_BYTES_PER_CORE = 2e9
"""That tensor tasks read and write, with the elementwise functions between."""
EDGE_BYTES_PER_CORE = 8e9
"""That Gathers read, rows of the table at random."""
HOP_SECONDS_PER_CORE = 0.5e-3
"""For each step of each interval, whatever it computes: events, messages, threads."""
FULL_VCPU_MB = 1769
"""Of memory, for which a function has one vCPU. Source: AWS Lambda Developer Guide."""


@dataclass(frozen=True)
class Sizes:
    """Of a graph as it is cut: what a graph folder's manifest says."""

    num_nodes: int
    num_edges: int
    num_intervals: int
    num_features: int
    num_classes: int
    task: Task
    weighted: bool = False
    """Whether edges have weights."""


@dataclass(frozen=True)
class EpochWork:
    """Of one epoch of training, all graph servers together.

    edge_bytes   read by Gathers: a row for every edge, and its weight where edges have weights
    row_bytes    read and written by tensor tasks
    hops         steps of all intervals
    """

    flops: int
    row_bytes: int
    edge_bytes: int
    tasks_in_a_row: int
    hops: int
    num_intervals: int


@dataclass(frozen=True)
class Shares:
    """Core seconds of an epoch. f: the tensor share of both."""

    tensor: float
    graph: float

    @property
    def f(self) -> float:
        return self.tensor / (self.tensor + self.graph)


def epoch_work(programs: Programs, sizes: Sizes) -> EpochWork:
    """Self loops that a model adds are not among `num_edges`, but in the bytes that its Gathers read."""
    model, steps = programs.model, programs.train.steps
    gathers = [step for step in steps if step.kind in (Kind.GATHER, Kind.EDGE)]
    per_vertex = sum(row_bytes(model, n) for step in steps if step.kind is Kind.APPLY for n in step.reads + step.writes)
    costs = [step_cost(model, step) for step in steps]
    return EpochWork(
        flops=sum(sizes.num_nodes * each.flops_per_vertex + sizes.num_edges * each.flops_per_edge for each in costs),
        row_bytes=sizes.num_nodes * per_vertex,
        edge_bytes=sum((sizes.num_edges + sizes.num_nodes) * row_bytes(model, step.reads[0]) for step in gathers)
        + len(gathers) * (FLOAT_BYTES * sizes.num_edges if sizes.weighted else 0),
        tasks_in_a_row=sum(step.kind is Kind.APPLY for step in steps),
        hops=len(steps) * sizes.num_intervals,
        num_intervals=sizes.num_intervals,
    )


def shares(work: EpochWork) -> Shares:
    tensor = work.flops / FLOPS_PER_CORE + work.row_bytes / ROW_BYTES_PER_CORE
    return Shares(tensor, work.edge_bytes / EDGE_BYTES_PER_CORE + work.hops * HOP_SECONDS_PER_CORE)


def cores(work: EpochWork, vcpus: int, num_graph_servers: int) -> int:
    """Of all graph servers, as far as there are intervals for them."""
    return min(vcpus * num_graph_servers, work.num_intervals)

"""How much memory each role of a job takes at most, by counts and declared widths. Nothing is measured.

    graph server       process · edges · tensors · tasks · weights · messages · reading
    parameter server   process · versions, optimizer, gradients
    launcher           process · predictions
    functions          process · constants · tasks, of each

Every part is at its most, though not all are at the same moment. What a process takes without data was measured, and
benchmarks/memory.py compares the whole with what a training takes.
"""

from dataclasses import dataclass, fields

import numpy as np

from common.saga.cost import FLOAT_BYTES, kept_width, once_bytes, row_bytes, stored_bytes, task_row_bytes
from common.saga.program import Kind
from common.wire.clients import KEPT_WEIGHTS
from graph_server.graph.csr import index_dtype
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.partition import deal_folder
from graph_server.large.shares import ServerShare, shares
from local_cloud.prepare import PreparedJob

GRAPH_SERVER_BYTES = 145_000_000
"""Without a graph: the interpreter, NumPy, Numba, and what its kernels were compiled to."""
AWS_CLIENT_BYTES = 45_000_000
"""In a graph server that invokes functions."""
PARAMETER_SERVER_BYTES = 50_000_000
LAUNCHER_BYTES = 125_000_000
FUNCTION_BYTES = 45_000_000
SERVICE_BYTES = 30_000_000
"""The local Lambda service itself."""
HELD_WEIGHTS = 8
"""Copies in a parameter server: two versions and the one that is made, the best one, the optimizer's two, and gradients
in float64."""
SLOTS = 2
"""Tasks that a function holds at once."""
SORTED = 3
"""Copies of a directed graph's edges while its out-edges are made."""
WEIGHT, OFFSET, ID = 4, 8, 8
"""Bytes of an edge's weight, of where a row's edges begin, of a row's or a ghost's id."""


@dataclass(frozen=True)
class ServerMemory:
    """Bytes. tensors: and products that are kept from forward to backward. tasks: what they compute with, all cores at
    once. weights: that it has fetched, and gradients on their way. messages: to and from functions. reading: beyond all
    others, while edges and features are read and hoisted steps run."""

    process: int
    edges: int
    tensors: int
    tasks: int
    weights: int
    messages: int
    reading: int

    @property
    def total(self) -> int:
        return sum(getattr(self, each.name) for each in fields(self))


@dataclass(frozen=True)
class Memory:
    """Bytes. parameter_server: of each. functions: of all together, where they run on this machine."""

    graph_servers: tuple[ServerMemory, ...]
    parameter_server: int
    num_parameter_servers: int
    launcher: int
    functions: int

    @property
    def most(self) -> int:
        """Of one role."""
        return max(*(server.total for server in self.graph_servers), self.parameter_server)

    @property
    def here(self) -> int:
        """All roles on one machine."""
        return sum(self.parts.values())

    @property
    def parts(self) -> dict[str, int]:
        """Of all roles together, by what it is for."""
        servers = {each.name: sum(getattr(s, each.name) for s in self.graph_servers) for each in fields(ServerMemory)}
        processes = servers.pop("process") + self.launcher + self.parameter_server * self.num_parameter_servers
        return {**servers, "processes": processes, "functions": self.functions}


def count_memory(job: PreparedJob, *, threads: int, num_functions: int = 0) -> Memory:
    """threads: cores of each graph server's machine. num_functions: as many leases at once."""
    cluster, manifest, model = job.spec.cluster, job.folder.manifest, job.programs.model
    weights = sum(FLOAT_BYTES * int(np.prod(parameter.shape)) for parameter in model.parameters())
    size = _Size(weights, threads, num_functions / cluster.num_graph_servers)
    # in async, as many versions more, and as many predictions
    copies = HELD_WEIGHTS + 2 * job.spec.training.staleness + 4 * job.num_intervals.bit_length()
    logits = FLOAT_BYTES * manifest.num_nodes * model.widths()[-1].out
    return Memory(
        graph_servers=tuple(
            _graph_server(job, share, size) for share in server_shares(job.folder, cluster.num_graph_servers)
        ),
        parameter_server=PARAMETER_SERVER_BYTES + -(-weights // cluster.num_parameter_servers) * copies,
        num_parameter_servers=cluster.num_parameter_servers,
        launcher=LAUNCHER_BYTES + 2 * logits,
        functions=_functions(job, num_functions, weights) if num_functions else 0,
    )


@dataclass(frozen=True)
class _Size:
    """weights: bytes of a version. threads, functions: of each graph server."""

    weights: int
    threads: int
    functions: float


def server_shares(folder: GraphFolder, num_graph_servers: int) -> tuple[ServerShare, ...]:
    """A single one holds all, which takes no look at the edges."""
    if num_graph_servers > 1:
        return shares(folder, deal_folder(folder, num_graph_servers)).servers
    manifest = folder.manifest
    whole = ServerShare(
        intervals=folder.num_intervals,
        vertices=manifest.num_nodes,
        edges=manifest.num_edges,
        train_vertices=0,
        ghosts=0,
        backward_ghosts=0,
    )
    return (whole,)


def _graph_server(job: PreparedJob, share: ServerShare, size: _Size) -> ServerMemory:
    programs, rows = job.programs, {"num_own": share.vertices, "num_ghosts": share.ghosts}
    stored = stored_bytes(programs, **rows, num_backward_ghosts=share.backward_ghosts)
    once, edges = once_bytes(programs, **rows), edge_bytes(job.folder, share)
    computes = job.spec.backend.name != "lambda"
    kept = FLOAT_BYTES * kept_width(programs.model, programs.train) * share.vertices if computes else 0
    tensors = stored - once + kept
    tasks = min(size.threads, share.intervals) * _largest_task(job) if computes else 0
    # Ends of edges are there twice while they are numbered anew, and more often where both directions are sorted;
    # hoisted steps run before other tensors are used.
    again = edges * (1 if job.folder.manifest.symmetric else SORTED)
    reading = max(again, stored_bytes(programs, **rows, only="constant"))
    return ServerMemory(
        process=GRAPH_SERVER_BYTES + (AWS_CLIENT_BYTES if size.functions else 0),
        edges=edges,
        tensors=tensors,
        tasks=tasks,
        # fetched ones, and gradients of two tasks of each core
        weights=size.weights * (KEPT_WEIGHTS + 2 * size.threads),
        messages=round(size.functions * _largest_input(job)),
        reading=max(0, reading - tensors - tasks),
    )


def edge_bytes(folder: GraphFolder, share: ServerShare) -> int:
    """Of a graph server; of a symmetric graph one direction is both."""
    manifest = folder.manifest
    each = np.dtype(index_dtype(manifest.num_nodes)).itemsize + (WEIGHT if manifest.weighted else 0)
    one = share.edges * each + share.vertices * (OFFSET + ID)
    ghosts = share.ghosts + (0 if manifest.symmetric else share.backward_ghosts)
    return one * (1 if manifest.symmetric else 2) + ghosts * 4 * ID


def _largest_task(job: PreparedJob) -> int:
    """Beside its inputs, which lie in the store."""
    tasks = [step for step in job.programs.train.steps if step.kind is Kind.APPLY]
    return _largest_interval(job) * max(task_row_bytes(job.programs.model, step) for step in tasks)


def _largest_input(job: PreparedJob) -> int:
    steps, model = job.programs.train.steps, job.programs.model
    width = max(sum(row_bytes(model, name) for name in step.reads) for step in steps if step.kind is Kind.APPLY)
    return _largest_interval(job) * width


def _largest_interval(job: PreparedJob) -> int:
    return int(np.diff(job.folder.bounds).max())


def _functions(job: PreparedJob, count: int, weights: int) -> int:
    """Each interval's constants lie in one of them."""
    programs, rows = job.programs, job.folder.manifest.num_nodes
    constants = stored_bytes(programs, num_own=rows, only="constant") - once_bytes(programs, num_own=rows)
    each = FUNCTION_BYTES + _largest_task(job) + SLOTS * _largest_input(job) + 2 * weights
    return SERVICE_BYTES + constants + count * each

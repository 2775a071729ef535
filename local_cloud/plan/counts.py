"""What a training needs, by counts alone: memory of each server, work and bytes of an epoch. Nothing is measured."""

from dataclasses import dataclass

import numpy as np

from common.saga.cost import FLOAT_BYTES, kept_width, row_bytes, stored_bytes
from common.saga.program import Kind, Programs
from graph_server.graph.edges import Edges
from graph_server.graph.partition import Partition, deal_folder
from local_cloud.explain import predict_job
from local_cloud.payload import Computers, GraphCounts, PassPayload, pass_links
from local_cloud.prepare import PreparedJob

PROCESS_BYTES = 250_000_000
"""A graph server without a graph: the interpreter, NumPy, Numba, and what its kernels were compiled to."""
HELD_WEIGHTS = 8
"""Copies of the weights in a parameter server: kept versions, the best one, the optimizer's two, gradients."""


@dataclass(frozen=True)
class Work:
    """Of one epoch of training, all graph servers together.

    edge_bytes   read by Gathers: a row for every edge
    row_bytes    read and written by tensor tasks
    hops         steps of all intervals
    """

    flops: int
    row_bytes: int
    edge_bytes: int
    tasks_in_a_row: int
    hops: int
    num_intervals: int
    payload: PassPayload

    def links(self, computers: Computers) -> dict[str, int]:
        return pass_links(self.payload, computers)


@dataclass(frozen=True)
class Memory:
    """Bytes; of each graph server, and of each parameter server."""

    graph_servers: tuple[int, ...]
    parameter_server: int

    @property
    def most(self) -> int:
        return max(*self.graph_servers, self.parameter_server)


def count_memory(job: PreparedJob) -> Memory:
    cluster = job.spec.cluster
    book = deal_folder(job.folder, cluster.num_graph_servers)
    partitions = (Partition.load(job.folder, book, server) for server in range(cluster.num_graph_servers))
    weights = sum(4 * int(np.prod(parameter.shape)) for parameter in job.programs.model.parameters())
    held = -(-weights // cluster.num_parameter_servers) * HELD_WEIGHTS
    kept = FLOAT_BYTES * kept_width(job.programs.model, job.programs.train)
    servers = tuple(
        PROCESS_BYTES + _edges(each) + tensor_bytes(job.programs, each) + each.num_own * kept for each in partitions
    )
    return Memory(servers, PROCESS_BYTES + held)


def count_work(job: PreparedJob, counts: GraphCounts) -> Work:
    payload, model = predict_job(job, counts), job.programs.model
    steps = job.programs.train.steps
    gathers = [step for step in steps if step.kind in (Kind.GATHER, Kind.EDGE)]
    per_vertex = sum(row_bytes(model, n) for step in steps if step.kind is Kind.APPLY for n in step.reads + step.writes)
    return Work(
        flops=payload.flops,
        row_bytes=counts.num_nodes * per_vertex,
        edge_bytes=sum((counts.num_edges + counts.num_nodes) * row_bytes(model, step.reads[0]) for step in gathers),
        tasks_in_a_row=sum(step.kind is Kind.APPLY for step in steps),
        hops=len(steps) * counts.num_intervals,
        num_intervals=counts.num_intervals,
        payload=payload,
    )


def tensor_bytes(programs: Programs, partition: Partition) -> int:
    """Of a graph server's tensor store, when it starts."""
    return stored_bytes(
        programs,
        num_own=partition.num_own,
        num_ghosts=partition.in_edges.num_ghosts,
        num_backward_ghosts=partition.out_edges.num_ghosts,
    )


def _edges(partition: Partition) -> int:
    directions = {id(edges): edges for edges in (partition.in_edges, partition.out_edges)}
    return sum(_edge_bytes(edges) for edges in directions.values())


def _edge_bytes(edges: Edges) -> int:
    sends = sum(rows.nbytes for peers in edges.sends.values() for rows in peers.values())
    return edges.indptr.nbytes + edges.columns.nbytes + edges.ghosts.nbytes + edges.table_ids.nbytes + sends

"""The streaming cuts, several passes, one vertex at a time: linear deterministic greedy (LDG), and Fennel.

A vertex goes to the cluster that holds most of its neighbours: for LDG scaled down by how full the cluster is, for
Fennel less a price that grows with the cluster's vertices. A cluster is full at `SLACK` times its share of the edges,
and on demand for train vertices at so much of their share. Only clusters seen among the neighbours and the least loaded
one are scored, so a pass is O(E + V log k) also for thousands of clusters. Loads are integers and no multiplication
meets an addition, so the result of LDG is the same on every CPU.

Source: Stanton and Kliot, "Streaming graph partitioning for large distributed graphs", KDD 2012; repeated passes after
Nishimura and Ugander, KDD 2013. Fennel: Tsourakakis et al., WSDM 2014, with gamma = 1.5.
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from graph_server.graph.csr import Bools, Csr, Indices, Ints

PASSES = 5
SLACK = 1.05
FULL = np.iinfo(np.int64).max
LONE = 1e-3
"""What a cluster without a neighbour scores: less than any neighbour, more where there is more room."""


def stream_clusters(
    structure: Csr,
    num_clusters: int,
    *,
    seed: int,
    max_rows: int | None = None,
    objective: Literal["ldg", "fennel"] = "ldg",
    train: Bools | None = None,
) -> Ints:
    """The cluster of each vertex, [V] int64.

    structure  symmetric, or a directed graph's neighbourhoods would be seen from one side only
    max_rows   no cluster takes more vertices; max_rows · num_clusters must reach V
    train      [V] these vertices are balanced, too
    """
    num_rows = structure.num_rows
    order = np.random.default_rng(seed).permutation(num_rows)
    total = int(structure.indptr[-1]) + num_rows
    counted = np.zeros(num_rows, np.bool_) if train is None else train
    limits = _Limits(
        SLACK * total / num_clusters,
        num_rows if max_rows is None else max_rows,
        num_rows if train is None else int(np.ceil(SLACK * counted.sum() / num_clusters)),
        _price(structure, num_clusters) if objective == "fennel" else 0.0,
    )
    state = _empty(num_clusters, num_rows)
    return _stream(structure.indptr, structure.indices, order, counted, state, limits).astype(np.int64)


def _price(structure: Csr, num_clusters: int) -> float:
    """gamma · alpha, alpha = sqrt(clusters) · edges / vertices^1.5; every edge stands twice in the structure."""
    num_rows = max(structure.num_rows, 1)
    return float(1.5 * np.sqrt(num_clusters) * (int(structure.indptr[-1]) / 2) / num_rows**1.5)


class _Limits(NamedTuple):
    load: float
    rows: int
    train: int
    price: float
    """Of Fennel, per root of a cluster's vertices; 0: LDG."""


class _State(NamedTuple):
    """`winners` is a tournament over `keys`, the loads of the clusters that may take a vertex: winners[1] has least."""

    clusters: npt.NDArray[np.int32]
    loads: Ints
    rows: Ints
    keys: Ints
    winners: Ints
    counts: Ints
    seen: Ints
    train: Ints


def _empty(num_clusters: int, num_nodes: int) -> _State:
    leaves = 1 << max(num_clusters - 1, 1).bit_length()
    keys = np.full(leaves, FULL, np.int64)
    keys[:num_clusters] = 0
    winners = np.concatenate([np.zeros(leaves, np.int64), np.arange(leaves)])
    zeros = np.zeros((5, num_clusters), np.int64)
    return _State(np.full(num_nodes, -1, np.int32), zeros[0], zeros[1], keys, winners, zeros[2], zeros[3], zeros[4])


@njit(nogil=True, cache=True)
def _stream(
    indptr: Ints, indices: Indices, order: Ints, train: Bools, state: _State, limits: _Limits
) -> npt.NDArray[np.int32]:
    for cluster in range(state.loads.shape[0]):
        _shift(state, cluster, 0, 0, limits.rows)
    for _ in range(PASSES):
        for vertex in order:
            first, last = indptr[vertex], indptr[vertex + 1]
            weight = last - first + 1
            if state.clusters[vertex] >= 0:
                _shift(state, state.clusters[vertex], -weight, -1, limits.rows)
                state.train[state.clusters[vertex]] -= train[vertex]
                state.clusters[vertex] = -1
            cluster = _choose(state, indices[first:last], weight, train[vertex], limits)
            state.clusters[vertex] = cluster
            state.train[cluster] += train[vertex]
            _shift(state, cluster, weight, 1, limits.rows)
    return state.clusters


@njit(nogil=True, cache=True)
def _shift(state: _State, cluster: int, weight: int, rows: int, max_rows: int) -> None:
    state.loads[cluster] += weight
    state.rows[cluster] += rows
    state.keys[cluster] = state.loads[cluster] if state.rows[cluster] < max_rows else FULL
    node = (cluster + state.keys.shape[0]) // 2
    while node >= 1:
        left, right = state.winners[2 * node], state.winners[2 * node + 1]
        state.winners[node] = left if state.keys[left] <= state.keys[right] else right
        node //= 2


@njit(nogil=True, cache=True)
def _choose(state: _State, neighbours: Indices, weight: int, trains: bool, limits: _Limits) -> int:
    num_seen, cap = _count(state, neighbours), limits.load
    # If nothing fits, the least loaded cluster takes the vertex: a hub may be heavier than any cap.
    best = state.winners[1]
    best_score = _score(state, best, 0, limits)
    for place in range(num_seen):
        cluster = state.seen[place]
        count = state.counts[cluster]
        state.counts[cluster] = 0
        if state.keys[cluster] == FULL or state.loads[cluster] + weight > cap:
            continue
        if trains and state.train[cluster] >= limits.train:
            continue
        score = _score(state, cluster, count, limits)
        if score > best_score or (score == best_score and cluster < best):
            best, best_score = cluster, score
    return best


@njit(nogil=True, cache=True)
def _score(state: _State, cluster: int, count: int, limits: _Limits) -> float:
    if limits.price > 0:
        return count - limits.price * np.sqrt(state.rows[cluster])
    return (count + LONE) * (1.0 - state.loads[cluster] / limits.load)


@njit(nogil=True, cache=True)
def _count(state: _State, neighbours: Indices) -> int:
    """Fill `counts` for the clusters of these vertices, list them in `seen`; the caller clears `counts` again."""
    num_seen = 0
    for neighbour in neighbours:
        cluster = state.clusters[neighbour]
        if cluster >= 0:
            if state.counts[cluster] == 0:
                state.seen[num_seen] = cluster
                num_seen += 1
            state.counts[cluster] += 1
    return num_seen

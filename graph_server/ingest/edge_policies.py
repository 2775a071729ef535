"""What becomes of the edges: `dedup`, then `directed`. Both are counted, neither is silent.

Edges are a multiset: `dedup` keeps the first of equal edges; making a graph undirected adds to each pair of vertices
what one direction has more than the other, so that the result is its own transpose. A weight stays with its edge: the
first of equal edges keeps its own, and an edge that is added bears that of the edge it answers, the k-th in one
direction being answered by the k-th in the other.
"""

from dataclasses import dataclass

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.raw_graph import Array, RawGraph

_MAX_NODES = 3_037_000_499
"""Above this, source * num_nodes + target no longer fits into 64 bits."""


@dataclass(frozen=True)
class Edges:
    """sources, targets int64 [E]; counts for the report."""

    sources: Array
    targets: Array
    directed: bool
    counts: dict[str, int | float]
    weights: Array | None = None
    """float32 [E]"""


def apply_edge_policies(raw: RawGraph, options: DatasetSpec) -> Edges:
    """Raises DatasetError when `directed: auto` cannot tell."""
    num_nodes = raw.num_nodes
    if num_nodes > _MAX_NODES:
        raise DatasetError(f"{num_nodes} vertices", f"at most {_MAX_NODES} can be told apart here", "split the graph")
    sources, targets = raw.sources, raw.targets
    weights = None if raw.weights is None else raw.weights.values
    keys = sources * num_nodes + targets
    present, times = np.unique(keys, return_counts=True)
    removed = 0
    counts: dict[str, int | float] = {"edges_raw": raw.num_edges, "duplicate_edges": len(keys) - len(present)}
    if wants_dedup(options, raw):
        removed = len(keys) - len(present)
        kept = np.sort(np.unique(keys, return_index=True)[1])
        if weights is not None:
            counts["duplicate_edges_of_another_weight"] = _of_another_weight(keys, weights)
            weights = weights[kept]
        sources, targets, times = sources[kept], targets[kept], np.ones_like(times)
    missing, reciprocity = _against_transpose(present, times, num_nodes)
    directed = is_directed(raw, options, reciprocity)
    after_dedup = len(sources)
    if not directed and len(missing):
        if weights is not None:
            weights = np.concatenate([weights, weights[_answered_by_missing(sources, targets, num_nodes)]])
        sources, targets = (
            np.concatenate(pair) for pair in ((sources, missing // num_nodes), (targets, missing % num_nodes))
        )
    counts |= {
        "duplicate_edges_removed": removed,
        "edges_after_dedup": after_dedup,
        "reverse_edges_added": 0 if directed else len(missing),
        "edges": len(sources),
        "reciprocity": reciprocity,
        **_shape_counts(sources, targets, num_nodes),
    }
    return Edges(np.ascontiguousarray(sources), np.ascontiguousarray(targets), directed, counts, weights)


def _of_another_weight(keys: Array, weights: Array) -> int:
    """How many repeats of an edge have another weight than the first of it."""
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    return int((weights != weights[first[group]]).sum())


def _answered_by_missing(sources: Array, targets: Array, num_nodes: int) -> Array:
    """Places of the edges whose reverse is missing, in the order in which `_against_transpose` lists those."""
    keys, wanted = sources * num_nodes + targets, targets * num_nodes + sources
    order = np.argsort(wanted, kind="stable")
    wanted = wanted[order]
    rank = np.arange(len(wanted)) - np.searchsorted(wanted, wanted)
    there = np.sort(keys)
    found = np.searchsorted(there, wanted, side="right") - np.searchsorted(there, wanted)
    missing: Array = order[rank >= found]
    return missing


def wants_dedup(options: DatasetSpec, raw: RawGraph) -> bool:
    return raw.edges_are_a_set if options.dedup == "auto" else bool(options.dedup)


def _against_transpose(present: Array, counts: Array, num_nodes: int) -> tuple[Array, float]:
    """What the graph lacks to be its own transpose, and the share of its edges whose reverse is there.

    present  sorted keys of the edges, each once; counts: how often each is there

    Missing keys are sorted, each as often as it is missing. Self loops are left out of the share, which is 1 when
    there is no other edge.
    """
    if not len(present):
        return present, 1.0
    transposed = present % num_nodes * num_nodes + present // num_nodes
    order = np.argsort(transposed, kind="stable")
    wanted = transposed[order]
    place = np.minimum(np.searchsorted(present, wanted), len(present) - 1)
    found = np.where(present[place] == wanted, counts[place], 0)
    between = present // num_nodes != present % num_nodes
    share = float((found > 0)[between[order]].mean()) if between.any() else 1.0
    return np.repeat(wanted, np.maximum(counts[order] - found, 0)), share


def is_directed(raw: RawGraph, options: DatasetSpec, reciprocity: float) -> bool:
    if options.directed != "auto":
        return bool(options.directed)
    if raw.undirected is not None:
        return not raw.undirected
    if reciprocity == 1.0:
        return False
    raise DatasetError(
        what=f"the file does not say whether edges go both ways: {reciprocity:.1%} of them have their reverse",
        why="messages flow along edges, so the answer changes the result",
        fix="set dataset.directed: false to add the missing reverse edges, or true to take the edges as they stand",
    )


def _shape_counts(sources: Array, targets: Array, num_nodes: int) -> dict[str, int | float]:
    """Isolated: no edge to another vertex; a self loop does not count for that."""
    in_degree = np.bincount(targets, minlength=num_nodes)
    others = sources != targets
    alone = np.ones(num_nodes, dtype=bool)
    alone[sources[others]] = False
    alone[targets[others]] = False
    return {
        "self_loops": int((~others).sum()),
        "isolated": int(alone.sum()),
        "zero_in_degree": int((in_degree == 0).sum()),
        "largest_in_degree": int(in_degree.max(initial=0)),
    }

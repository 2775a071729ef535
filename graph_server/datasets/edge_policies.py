"""What becomes of the edges: `dedup`, then `directed`. Both are counted, neither is silent.

Edges are a multiset: `dedup` keeps the first of equal edges; making a graph undirected adds to each pair of vertices
what one direction has more than the other, so that the result is its own transpose.
"""

from dataclasses import dataclass

import numpy as np

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets.base import Array, RawGraph

_MAX_NODES = 3_037_000_499
"""Above this, source * num_nodes + target no longer fits into 64 bits."""


@dataclass(frozen=True)
class Edges:
    """sources, targets int64 [E]; counts for the report."""

    sources: Array
    targets: Array
    directed: bool
    counts: dict[str, int | float]


def apply_edge_policies(raw: RawGraph, options: DatasetSpec) -> Edges:
    """Raises DatasetError when `directed: auto` cannot tell."""
    num_nodes = raw.num_nodes
    if num_nodes > _MAX_NODES:
        raise DatasetError(f"{num_nodes} vertices", f"at most {_MAX_NODES} can be told apart here", "split the graph")
    sources, targets, duplicates = raw.sources, raw.targets, 0
    keys = sources * num_nodes + targets
    first = np.unique(keys, return_index=True)[1]
    duplicates = len(keys) - len(first)
    removed = duplicates if _wants_dedup(options, raw) else 0
    if removed:
        kept = np.sort(first)
        sources, targets, keys = sources[kept], targets[kept], keys[kept]
    missing = _missing_reverse(keys, num_nodes)
    reciprocity = _reciprocity(keys, sources, targets, num_nodes)
    directed = _is_directed(raw, options, reciprocity)
    after_dedup = len(keys)
    if not directed and len(missing):
        sources, targets = (
            np.concatenate(pair) for pair in ((sources, missing // num_nodes), (targets, missing % num_nodes))
        )
    counts = {
        "edges_raw": raw.num_edges,
        "duplicate_edges": duplicates,
        "duplicate_edges_removed": removed,
        "edges_after_dedup": after_dedup,
        "reverse_edges_added": 0 if directed else len(missing),
        "edges": len(sources),
        "reciprocity": reciprocity,
        **_shape_counts(sources, targets, num_nodes),
    }
    return Edges(np.ascontiguousarray(sources), np.ascontiguousarray(targets), directed, counts)


def _wants_dedup(options: DatasetSpec, raw: RawGraph) -> bool:
    return raw.edges_are_a_set if options.dedup == "auto" else bool(options.dedup)


def _missing_reverse(keys: Array, num_nodes: int) -> Array:
    """Keys of the edges that would make the graph undirected, sorted, each as often as it is missing."""
    present, counts = np.unique(keys, return_counts=True)
    wanted = present % num_nodes * num_nodes + present // num_nodes
    place = np.minimum(np.searchsorted(present, wanted), max(len(present) - 1, 0))
    found = np.where(present[place] == wanted, counts[place], 0) if len(present) else counts
    return np.sort(np.repeat(wanted, np.maximum(counts - found, 0)))


def _reciprocity(keys: Array, sources: Array, targets: Array, num_nodes: int) -> float:
    """Share of the edges between two different vertices whose reverse is there too; 1 when there are none."""
    between = np.unique(keys[sources != targets])
    reverse = between % num_nodes * num_nodes + between // num_nodes
    return float(np.isin(reverse, between, assume_unique=True).mean()) if len(between) else 1.0


def _is_directed(raw: RawGraph, options: DatasetSpec, reciprocity: float) -> bool:
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

"""Edges: how many of which kind, who has none, what hangs together."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from common.job_spec import DatasetSpec
from graph_server.ingest.doctor.diagnosis import DegreeBin, EdgeFacts, Finding, Level, first_rows
from graph_server.ingest.edge_policies import Edges, apply_edge_policies
from graph_server.ingest.edge_weights import extremes, negative_weights
from graph_server.ingest.raw_graph import Array, RawGraph


def edge_facts(raw: RawGraph, edges: Edges, options: DatasetSpec, *, is_refused: bool) -> EdgeFacts:
    """edges   as they are trained on or, while that is refused, as they would be in both directions"""
    counts = {name: int(count) for name, count in edges.counts.items()}
    in_degree = np.bincount(edges.targets, minlength=raw.num_nodes)
    num_components, largest = _components(edges, raw.num_nodes)
    return EdgeFacts(
        raw=raw.num_edges,
        distinct=raw.num_edges - counts["duplicate_edges"],
        both_ways=_both_ways(raw, edges, options),
        trained_on=None if is_refused else counts["edges"],
        directed=None if is_refused else edges.directed,
        reciprocity=float(edges.counts["reciprocity"]),
        self_loops=counts["self_loops"],
        isolated=counts["isolated"],
        zero_in_degree=counts["zero_in_degree"],
        components=num_components,
        largest_component=largest,
        mean_in_degree=counts["edges"] / raw.num_nodes,
        largest_in_degree=counts["largest_in_degree"],
        in_degrees=degree_bins(in_degree),
        weights=extremes(edges.weights),
        negative_weights=negative_weights(edges.weights, raw),
    )


def degree_bins(degrees: Array) -> tuple[DegreeBin, ...]:
    """0, 1, 2-3, 4-7, ... up to the largest.

    degrees   int64 [N]
    """
    # The number of binary digits of a degree is the number of its bin.
    counts = np.bincount(np.frexp(degrees.astype(np.float64))[1])
    return tuple(
        DegreeBin((1 << place) >> 1, max((1 << place) - 1, 0), count) for place, count in enumerate(counts.tolist())
    )


def edge_findings(raw: RawGraph, edges: Edges, facts: EdgeFacts) -> Iterator[Finding]:
    if not raw.num_edges:
        yield Finding(
            code="no_edges",
            level=Level.WARNING,
            what=f"none of the {raw.num_nodes} vertices has an edge",
            why="without edges a vertex is judged by its own features alone",
            fix="check that the file of edges is the right one",
        )
    yield from _duplicates(raw, edges)
    if (added := edges.counts["reverse_edges_added"]) and facts.trained_on is not None:
        yield Finding(
            code="reverse_edges_added",
            level=Level.NOTE,
            what=f"{added} reverse edges are added to {edges.counts['edges_after_dedup']} edges",
            why=f"messages are to flow both ways, and {facts.reciprocity:.1%} of the edges had their reverse",
            fix="take the edges as they stand, if their direction matters",
            options=("dataset.directed: true",),
        )
    if facts.self_loops:
        yield Finding(
            code="self_loops",
            level=Level.NOTE,
            what=f"{facts.self_loops} edges join a vertex to itself",
            why="they are kept; gcn and gat add a self loop only to vertices that have none",
            fix="remove them from the file, if they are not meant",
            rows_of="edges",
            rows=first_rows(raw.sources == raw.targets),
        )
    yield from _alone(raw, edges, facts)


def _both_ways(raw: RawGraph, edges: Edges, options: DatasetSpec) -> int:
    if edges.directed:
        edges = apply_edge_policies(raw, options.model_copy(update={"directed": False}))
    return int(edges.counts["edges"])


def _components(edges: Edges, num_nodes: int) -> tuple[int, int]:
    """How many, and the vertices of the largest."""
    ones = np.ones(len(edges.sources), dtype=bool)
    matrix = scipy.sparse.coo_matrix((ones, (edges.sources, edges.targets)), shape=(num_nodes, num_nodes))
    count, component = connected_components(matrix.tocsr(), directed=False)
    return int(count), int(np.bincount(component).max())


def _duplicates(raw: RawGraph, edges: Edges) -> Iterator[Finding]:
    count, removed = int(edges.counts["duplicate_edges"]), int(edges.counts["duplicate_edges_removed"])
    if not count:
        return
    first = np.unique(raw.sources * raw.num_nodes + raw.targets, return_index=True)[1]
    repeats = np.ones(raw.num_edges, dtype=bool)
    repeats[first] = False
    yield Finding(
        code="duplicate_edges",
        level=Level.NOTE if removed else Level.WARNING,
        what=f"{count} of {raw.num_edges} edges repeat another" + (": removed" if removed else ""),
        why="an edge that stands twice counts twice in every sum",
        fix="keep them, if they are meant" if removed else "remove them, if they are not meant",
        options=("dataset.dedup: false" if removed else "dataset.dedup: true",),
        rows_of="edges",
        rows=first_rows(repeats),
    )


def _alone(raw: RawGraph, edges: Edges, facts: EdgeFacts) -> Iterator[Finding]:
    """Vertices that hear of nobody, and parts of the graph that hear of each other only."""
    others = edges.sources != edges.targets
    no_edge = np.ones(raw.num_nodes, dtype=bool)
    no_edge[edges.sources[others]] = no_edge[edges.targets[others]] = False
    silent = np.bincount(edges.targets, minlength=raw.num_nodes) == 0
    unheard = silent & ~no_edge
    if facts.isolated and raw.num_edges:
        yield Finding(
            code="isolated",
            level=Level.NOTE,
            what=f"{facts.isolated} of {raw.num_nodes} vertices have no edge to another",
            why="they are kept, and judged by their own features alone",
            fix="check that no edges are missing",
            rows_of="vertices",
            rows=first_rows(no_edge),
        )
    if unheard.any():
        yield Finding(
            code="zero_in_degree",
            level=Level.WARNING,
            what=f"{int(unheard.sum())} of {raw.num_nodes} vertices have edges out and none in",
            why="messages flow from source to target, so they hear of nobody",
            fix="let messages flow both ways",
            options=("dataset.directed: false",),
            rows_of="vertices",
            rows=first_rows(unheard),
        )
    if facts.components - facts.isolated > 1:
        yield Finding(
            code="components",
            level=Level.NOTE,
            what=f"{facts.components - facts.isolated} parts without an edge between them, the largest of "
            f"{facts.largest_component} vertices",
            why="nothing is passed on from one part to another",
            fix="check that no edges are missing",
        )

"""Small graphs for the tests of this room: as datasets, as folders, as hypothesis strategies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from graph_server.graph.csr import EdgeList
from graph_server.graph.cut import Cut, make_cut
from graph_server.graph.graph_folder import GraphFolder, write_graph_folder
from graph_server.graph.partition import Partition, deal_folder
from graph_server.graph.partition_book import PartitionBook


@dataclass(frozen=True, eq=False)
class Graph:
    """What a graph folder is made of; features and labels are functions of the row, so that a mix-up shows."""

    sources: np.ndarray
    targets: np.ndarray
    num_nodes: int
    directed: bool = True
    string_ids: bool = False
    name: str = "small"
    fingerprint: str = "f" * 64
    task: str = "multi_class"
    class_values: tuple[Any, ...] = (10, 20, 30)
    report: Mapping[str, object] = field(default_factory=lambda: {"self_loops": np.int64(0), "notes": ("none",)})
    weights: np.ndarray | None = None

    @property
    def edges(self) -> EdgeList:
        return EdgeList(self.sources, self.targets, self.num_nodes)

    @property
    def node_ids(self) -> np.ndarray:
        ids = 1000 + 3 * np.arange(self.num_nodes)
        return np.array([f"né-{number}" for number in ids], np.str_) if self.string_ids else ids

    @property
    def features(self) -> np.ndarray:
        return np.arange(2 * self.num_nodes, dtype=np.float32).reshape(-1, 2)

    @property
    def labels(self) -> np.ndarray:
        return np.arange(self.num_nodes, dtype=np.int64) % 4 - 1

    @property
    def masks(self) -> np.ndarray:
        return np.array([1, 1, 2, 4], np.uint8)[np.arange(self.num_nodes) % 4]

    def pairs(self) -> list[tuple[int, int]]:
        """(source, target) by dataset row, sorted."""
        return sorted(zip(self.sources.tolist(), self.targets.tolist(), strict=True))


def graph_of(pairs: list[tuple[int, int]], num_nodes: int, *, directed: bool = True, string_ids: bool = False) -> Graph:
    both = pairs if directed else pairs + [(target, source) for source, target in pairs if source != target]
    array = np.array(both, np.int64).reshape(-1, 2)
    return Graph(array[:, 0].copy(), array[:, 1].copy(), num_nodes, directed, string_ids)


def two_blocks(num_nodes: int, *, inside: int, across: int, seed: int = 0) -> Graph:
    """An undirected graph of two halves, the even and the odd rows, with more edges inside than across."""
    random = np.random.default_rng(seed)
    block = random.integers(0, 2, inside)
    within = 2 * random.integers(0, num_nodes // 2, (2, inside)) + block
    between = 2 * random.integers(0, num_nodes // 2, (2, across)) + np.array([[0], [1]])
    sources, targets = np.concatenate([within, between], axis=1)
    return graph_of(list(zip(sources.tolist(), targets.tolist(), strict=True)), num_nodes, directed=False)


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 12) -> Graph:
    """Directed and undirected, with loops, duplicates and isolated vertices."""
    num_nodes = draw(st.integers(1, max_nodes))
    vertex = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(vertex, vertex), max_size=3 * num_nodes))
    return graph_of(pairs, num_nodes, directed=draw(st.booleans()))


def folder_of(graph: Graph, cut: Cut, parent: Path) -> GraphFolder:
    path = parent / f"small-{cut.sha256[:8]}.dorylus"
    write_graph_folder(graph, cut, path)
    return GraphFolder.open(path, verify=True)


def partitions(folder: GraphFolder, num_graph_servers: int) -> tuple[PartitionBook, list[Partition]]:
    book = deal_folder(folder, num_graph_servers)
    return book, [Partition.load(folder, book, server) for server in range(num_graph_servers)]


def random_cut(graph: Graph, num_intervals: int, seed: int = 0) -> Cut:
    return make_cut(graph.edges, num_intervals, method="hash", seed=seed)

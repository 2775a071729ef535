"""Small training jobs for simulated clusters: ten graphs, each prepared once, with every model on them.

The graphs are directed and undirected, with self loops, duplicate edges, isolated vertices and empty intervals.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from common import plugins
from common.passes import PassKind
from common.saga.arrays import Weights
from common.saga.compute import TaskInputs, TaskOutputs, compute
from common.saga.layer import ModelOptions
from common.saga.loss import LossOptions, loss_options
from common.saga.masks import Masks
from common.saga.program import Programs, derive
from graph_server.backends.base import TensorTask
from graph_server.graph.cut import cut_of_clusters
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.graph_folder import write_graph_folder
from graph_server.graph.partition import Partition, deal_folder
from graph_server.stages.held import Held
from graph_server.stages.load import load_constants

MODELS = ("gcn", "graphsage", "gin", "gat")
CLASSES = 3
MOST_OUTPUTS = 2_000
"""Kept per job; a run has about a hundred tasks, others are of attempts that came too late."""


@dataclass(frozen=True)
class Shape:
    """What distinguishes a graph of the pool. `paper`: the programs without hoisting and commuting."""

    num_nodes: int
    num_edges: int
    num_intervals: int
    directed: bool = False
    paper: bool = False
    hidden_sizes: tuple[int, ...] = (4,)


SHAPES = (
    Shape(12, 20, 3),
    Shape(12, 16, 7),
    Shape(14, 60, 4, directed=True),
    Shape(16, 24, 5, directed=True, paper=True),
    Shape(18, 40, 3, paper=True),
    Shape(20, 30, 3, directed=True),
    Shape(22, 90, 3, directed=True, hidden_sizes=(4, 6)),
    Shape(24, 40, 4, hidden_sizes=(3, 4), paper=True),
    Shape(27, 50, 4),
    Shape(30, 45, 4, directed=True),
)


@dataclass(frozen=True, eq=False)
class Graph:
    """What a graph folder is made of."""

    sources: np.ndarray
    targets: np.ndarray
    features: np.ndarray
    labels: np.ndarray
    masks: np.ndarray
    directed: bool
    name: str = "small"
    fingerprint: str = "f" * 64
    task: str = "multi_class"
    class_values: tuple[Any, ...] = tuple(range(CLASSES))
    report: dict[str, object] = field(default_factory=dict)
    weights: np.ndarray | None = None

    @property
    def node_ids(self) -> np.ndarray:
        return np.arange(len(self.labels))


@dataclass(frozen=True, eq=False)
class RememberedFolder(GraphFolder):
    """Reads each file once: thousands of clusters start from it."""

    files: dict[str, np.ndarray] = field(default_factory=dict)

    def _load(self, name: str) -> np.ndarray:
        if name not in self.files:
            self.files[name] = np.array(super()._load(name))
        return self.files[name]


@dataclass(frozen=True, eq=False)
class SmallJob:
    """What the roles of a simulated cluster start from."""

    folder: GraphFolder
    programs: Programs
    loss: LossOptions
    num_epochs: int = 2
    eval_frequency: int = 1
    seed: int = 7
    _outputs: dict[tuple[object, ...], TaskOutputs] = field(default_factory=dict)

    @property
    def num_intervals(self) -> int:
        return self.folder.num_intervals

    @lru_cache  # noqa: B019  jobs live as long as the tests
    def partitions(self, num_graph_servers: int) -> list[Partition]:
        book = deal_folder(self.folder, num_graph_servers)
        return [Partition.load(self.folder, book, server) for server in range(num_graph_servers)]

    def held(self, num_graph_servers: int, number: int, dtype: Any) -> Held:
        """A new one, as if it had just been loaded."""
        loaded = self._loaded(num_graph_servers, number, dtype)
        return deepcopy(loaded, {id(shared): shared for shared in (loaded.programs, loaded.partition)})

    def computed(self, task: TensorTask, weights: Weights) -> TaskOutputs:
        """A task's outputs, computed once for the same bytes of all its inputs: it is a function of these alone."""
        inputs = (rows.tobytes() for rows in (*task.rows.values(), *weights.values()))
        key = (task.pass_, task.position, task.interval, *inputs)
        if key not in self._outputs:
            training = task.pass_.kind is PassKind.TRAIN
            masks = Masks(seed=self.seed, interval=task.interval, epoch=task.pass_.epoch, training=training)
            outputs = compute(self.programs.model, task.step, TaskInputs(task.rows, weights, masks, self.loss))
            if len(self._outputs) >= MOST_OUTPUTS:
                return outputs
            self._outputs[key] = outputs
        return self._outputs[key]

    @lru_cache  # noqa: B019
    def _loaded(self, num_graph_servers: int, number: int, dtype: Any) -> Held:
        held = Held(self.programs, self.partitions(num_graph_servers)[number], seed=self.seed, dtype=dtype)
        load_constants(held)
        return held


def small_job(parent: Path, number: int, model: str) -> SmallJob:
    """The graph of SHAPES[number] with a model; its folder is written below `parent` at the first call."""
    shape, path = SHAPES[number], parent / f"{number}.dorylus"
    if not path.exists():
        _write(shape, number, path)
    folder = RememberedFolder.open(path)
    options = ModelOptions(
        num_features=folder.manifest.num_features,
        num_classes=CLASSES,
        hidden_sizes=shape.hidden_sizes,
        num_heads=2,
        dropout=0.3,
        attention_dropout=0.2,
    )
    declared = plugins.load("common.models", model).build(options)
    programs = derive(declared, hoist=not shape.paper, commute=not shape.paper)
    counts = folder.manifest.train_class_counts
    loss = loss_options((1.0, 2.0, 0.5), counts)
    return SmallJob(folder, programs, loss, num_epochs=2 + (number == 0), eval_frequency=1 if number in (0, 5) else 2)


def _write(shape: Shape, seed: int, path: Path) -> None:
    random = np.random.default_rng(seed)
    # The last two vertices are isolated; of four and more intervals the second is empty.
    pairs = random.integers(0, shape.num_nodes - 2, (shape.num_edges, 2))
    if not shape.directed:
        pairs = np.concatenate([pairs, pairs[pairs[:, 0] != pairs[:, 1], ::-1]])
    graph = Graph(
        sources=pairs[:, 0].copy(),
        targets=pairs[:, 1].copy(),
        features=random.normal(size=(shape.num_nodes, 6)).astype(np.float32),
        labels=random.integers(-1, CLASSES, shape.num_nodes),
        masks=random.choice(np.array([0, 1, 1, 2, 4], np.uint8), shape.num_nodes),
        directed=shape.directed,
    )
    clusters = random.integers(0, shape.num_intervals, shape.num_nodes)
    if shape.num_intervals > 3:
        clusters[clusters == 1] = 0
    cut = cut_of_clusters(clusters, shape.num_intervals, method="hash", seed=seed)
    write_graph_folder(graph, cut, path)

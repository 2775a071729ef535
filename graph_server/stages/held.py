"""What the stages of one graph server work on: its partition, its tensors, and what follows from both once."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from common.saga.arrays import Array
from common.saga.layer import Layer
from common.saga.program import Programs, Step
from graph_server.graph.edges import Edges
from graph_server.graph.factors import Factors, factors
from graph_server.graph.partition import Partition
from graph_server.graph.tensor_store import TensorStore


class Held:
    """add_loop, factors: per layer, of own rows. `seed` is the training's, for attention dropout. weights: of edges
    by `backward`, in the tensors' dtype; None where every edge counts the same."""

    def __init__(self, programs: Programs, partition: Partition, *, seed: int, dtype: Any = np.float32) -> None:
        self.programs, self.partition, self.seed = programs, partition, seed
        self.store = TensorStore(programs, partition, dtype)
        self._feeds = {
            backward: {interval: np.array(fed, np.int64) for interval, fed in edges.feeds.items()}
            for backward, edges in ((False, partition.in_edges), (True, partition.out_edges))
        }
        self.weights: dict[bool, Array | None] = {
            backward: None if edges.weights is None else edges.weights.astype(self.store.dtype, copy=False)
            for backward, edges in ((False, partition.in_edges), (True, partition.out_edges))
        }
        self.add_loop: list[Array] = []
        self.factors: list[Factors] = []
        for layer in programs.model.layers:
            wanted = layer.gather.self_loops
            self.add_loop.append(~partition.has_self_loop & wanted)
            self.factors.append(factors(layer.gather, partition.in_degree, self.add_loop[-1], self.store.dtype))

    def layer(self, step: Step) -> Layer:
        return self.programs.model.layers[step.layer]

    def feeds(self, interval: int, *, backward: bool) -> npt.NDArray[np.int64]:
        """The intervals whose rows an own interval's Gather reads."""
        return self._feeds[backward][interval]

    @cached_property
    def interval_of_row(self) -> npt.NDArray[np.int16]:
        """Of each row of the tables that ∇Gathers read; made when rows of several epochs first met."""
        edges = self.partition.out_edges
        return self.partition.book.interval_of(edges.table_ids).astype(np.int16)

    def edges(self, *, backward: bool) -> Edges:
        return self.partition.out_edges if backward else self.partition.in_edges

"""A pass without scheduler, threads and messages: every step, for every interval, one after the other.

What it computes is what the stages compute, so losses and gradients of a declared model can be asked for at any
weights; ghosts go from graph server to graph server by hand.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from common.passes import Pass, PassKind
from common.saga.arrays import Array, Weights
from common.saga.compute import TaskInputs, compute
from common.saga.masks import Masks
from common.saga.program import Kind, Step
from graph_server.graph.partition import Partition, deal_folder
from graph_server.stages.gather import gather_rows
from graph_server.stages.held import Held
from graph_server.stages.load import load_constants
from graph_server.stages.scatter import outgoing, scatter_rows
from local_cloud.prepare import PreparedJob
from parameter_server.initial_weights import initial_weights


class Walk:
    def __init__(self, job: PreparedJob, num_graph_servers: int = 1, dtype: Any = np.float64) -> None:
        self.job, self.dtype, self._walks = job, np.dtype(dtype), 0
        book = deal_folder(job.folder, num_graph_servers)
        partitions = [Partition.load(job.folder, book, number) for number in range(num_graph_servers)]
        self.servers = [Held(job.programs, p, seed=job.spec.training.seed, dtype=dtype) for p in partitions]
        for held in self.servers:
            load_constants(held)

    @property
    def num_ghosts(self) -> int:
        return sum(held.partition.in_edges.num_ghosts for held in self.servers)

    def initial_weights(self) -> dict[str, Array]:
        return initial_weights(self.job.programs.model.parameters(), self.job.spec.training.seed, self.dtype)

    def train(self, weights: Weights, epoch: int = 1) -> tuple[float, dict[str, Array]]:
        """(loss, gradients) of `train epoch` at these weights."""
        sums, gradients = self._walk(self.job.programs.train.steps, self._next_pass(PassKind.TRAIN, epoch), weights)
        return sums["loss"] / sums["loss_weight"], gradients

    def logits(self, weights: Weights) -> Array:
        """[V, classes] of an evaluation, in relabelled order."""
        pass_ = self._next_pass(PassKind.PREDICT, 1)
        self._walk(self.job.programs.predict.steps, pass_, weights)
        blocks = {i: held.store.rows(pass_, "logits", i) for held in self.servers for i in held.partition.own}
        return np.concatenate([blocks[interval] for interval in range(self.job.num_intervals)])

    def _next_pass(self, kind: PassKind, epoch: int) -> Pass:
        """Newer than all before, so that ghosts are taken; its masks are those of `epoch`."""
        self._walks += 1
        return Pass(epoch, kind, self._walks)

    def _walk(
        self, steps: Sequence[Step], pass_: Pass, weights: Weights
    ) -> tuple[Mapping[str, float], dict[str, Array]]:
        sums: dict[str, float] = {}
        gradients = {name: np.zeros_like(w) for name, w in weights.items()}
        for step in steps:
            for held in self.servers:
                for interval in held.partition.own:
                    self._step(held, pass_, step, interval, weights, (sums, gradients))
        return sums, gradients

    def _step(
        self, held: Held, pass_: Pass, step: Step, interval: int, weights: Weights, totals: tuple[Any, Any]
    ) -> None:
        match step.kind:
            case Kind.GATHER:
                rows = held.partition.rows[interval]
                gather_rows(held, pass_, step, (rows.start, rows.stop))
            case Kind.SCATTER:
                block = scatter_rows(held, pass_, step, interval)
                for parcel in outgoing(held, step, interval, block):
                    self.servers[parcel.peer].store.accept_ghosts(pass_, parcel.table, interval, parcel.block)
            case Kind.APPLY:
                self._apply(held, pass_, step, interval, weights, totals)

    def _apply(
        self, held: Held, pass_: Pass, step: Step, interval: int, weights: Weights, totals: tuple[Any, Any]
    ) -> None:
        rows = {name: held.store.rows(pass_, name, interval) for name in step.reads}
        training = pass_.kind is PassKind.TRAIN
        masks = Masks(seed=held.seed, interval=interval, epoch=pass_.epoch, training=training)
        outputs = compute(self.job.programs.model, step, TaskInputs(rows, weights, masks, self.job.loss))
        for name, block in outputs.rows.items():
            held.store.write(pass_, name, interval, block)
        sums, gradients = totals
        for name, value in outputs.sums.items():
            sums[name] = sums.get(name, 0.0) + value
        for name, gradient in outputs.gradients.items():
            gradients[name] += gradient


def slope(walk: Walk, weights: Weights, towards: Weights, *, epoch: int = 1, step: float = 1e-6) -> float:
    """The loss's slope at `weights` in a direction, by central differences; what `towards` lacks stays."""
    ends = []
    for sign in (1, -1):
        moved = {name: w + sign * step * towards[name] if name in towards else w for name, w in weights.items()}
        ends.append(walk.train(moved, epoch)[0])
    return (ends[0] - ends[1]) / (2 * step)

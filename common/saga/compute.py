"""One tensor task: NumPy only, the same on every backend.

compute(model, step, inputs) -> rows, gradients, sums. What it gives is a function of its arguments alone: one call on
exactly one interval's rows, so wherever and however often a task runs, it gives the same bits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from common.saga.arrays import Array, Rows, Weights
from common.saga.layer import Model, Part, full_name
from common.saga.loss import LossOptions, loss_and_gradient
from common.saga.masks import Masks
from common.saga.metric_sums import metric_sums
from common.saga.program import Kind, Stage, Step, output_gradients, part_reads, part_writes, row_gradients
from common.saga.tasks import TRUTH
from common.saga.tensor_functions import TensorFunction

Kept = dict[tuple[int, str, int], Array]
"""By layer, part and place in it: outputs of linear maps, from a forward step to the step that recomputes them in the
same pass of the same interval. Who computes both in one place saves the product; the bits are those of computing anew.
"""


@dataclass(frozen=True)
class TaskInputs:
    rows: Rows
    """By the names in step.reads: [n, width] each."""
    weights: Weights
    """By full name."""
    masks: Masks
    loss: LossOptions
    kept: Kept | None = None
    """Filled and emptied by `compute`. None: nothing is kept."""


@dataclass
class TaskOutputs:
    rows: dict[str, Array] = field(default_factory=dict)
    """By the names in step.writes."""
    gradients: dict[str, Array] = field(default_factory=dict)
    """Of weights, by full name."""
    sums: dict[str, float] = field(default_factory=dict)
    """Of loss and metrics; only from the step with the loss."""


def compute(model: Model, step: Step, inputs: TaskInputs) -> TaskOutputs:
    run = _Run(model, step, inputs)
    # A training that diverges overflows: the weight store and the training clock see that, and say so.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for stage in step.recompute:
            run.stage(stage, again=True)
        for stage in step.stages:
            run.stage(stage)
    run.out.rows = {name: run.values[name] for name in step.writes}
    return run.out


def step_parameters(model: Model, step: Step) -> tuple[str, ...]:
    """Full names of the weights a tensor task reads."""
    parts = {(stage.layer, stage.part): None for stage in (*step.recompute, *step.stages) if stage.kind is Kind.APPLY}
    return tuple(p.name for layer, part in parts for p in model.part_parameters(layer, part))


def step_gradients(model: Model, step: Step) -> tuple[str, ...]:
    """Full names of the weights whose gradients a tensor task gives."""
    parts = [(stage.layer, stage.part) for stage in step.stages if stage.kind is Kind.APPLY and stage.backward]
    return tuple(p.name for layer, part in parts for p in model.part_parameters(layer, part))


def is_worth_keeping(step: Step, function: TensorFunction, *widths: int) -> bool:
    """What took a product, and is no wider than what it was made of; not where the gradient comes in the same step."""
    narrows = function.width(*widths) <= sum(widths)
    return bool(function.flops(*widths)) and narrows and not any(stage.backward for stage in step.stages)


class _Run:
    """The values of one task while it runs; a tape per part holds each tensor function's inputs for its vjp."""

    def __init__(self, model: Model, step: Step, inputs: TaskInputs) -> None:
        self.model, self.step, self.inputs = model, step, inputs
        self.values: dict[str, Array] = dict(inputs.rows)
        self.tapes: dict[tuple[int, str], list[tuple[Array, ...]]] = {}
        self.out = TaskOutputs()
        behind = [s for s in step.stages if s.backward or s.kind is Kind.LOSS]
        self._read_later = {n for s in behind for n in self._forward_needs(s)} | set(step.writes)

    def _forward_needs(self, stage: Stage) -> tuple[str, ...]:
        return ("logits",) if stage.kind is Kind.LOSS else part_reads(self.model, stage.layer, stage.part)

    def stage(self, stage: Stage, *, again: bool = False) -> None:
        """`again`: it was run before, in another step."""
        if stage.kind is Kind.LOSS:
            self._judge(*(self.values[name] for name in ("logits", TRUTH[self.model.task], "masks")))
        elif stage.backward:
            self._backward(stage.layer, stage.part)
        else:
            self._forward(stage.layer, stage.part, again=again)

    def _judge(self, logits: Array, truth: Array, masks: Array) -> None:
        options = self.inputs.loss
        sums, self.values["grad_logits"] = loss_and_gradient(logits, truth, masks, options)
        self.out.sums = sums | metric_sums(logits, truth, masks, options)

    def _weights(self, layer: int) -> Weights:
        prefix = full_name(layer, "")
        return {n.removeprefix(prefix): w for n, w in self.inputs.weights.items() if n.startswith(prefix)}

    def _forward(self, layer: int, part: str, *, again: bool) -> None:
        functions, weights = self.model.part(layer, part), self._weights(layer)
        tape = [tuple(self.values[name] for name in part_reads(self.model, layer, part))]
        for place, function in enumerate(functions[:-1]):
            before = self._kept_before((layer, part, place)) if again else None
            value = function.forward(weights, self.inputs.masks, *tape[-1]) if before is None else before
            tape.append((value,))
            if not again:
                self._keep((layer, part, place), function, tape)
        self.tapes[layer, part] = tape
        wrote = part_writes(self.model, layer, part)
        if wrote in self._read_later or self._read_by_next(wrote):
            self.values[wrote] = functions[-1].forward(weights, self.inputs.masks, *tape[-1])

    def _kept_before(self, place: tuple[int, str, int]) -> Array | None:
        return None if self.inputs.kept is None else self.inputs.kept.pop(place, None)

    def _keep(self, place: tuple[int, str, int], function: TensorFunction, tape: Sequence[tuple[Array, ...]]) -> None:
        if self.inputs.kept is not None and is_worth_keeping(self.step, function, *(x.shape[1] for x in tape[-2])):
            self.inputs.kept[place] = tape[-1][0]

    def _read_by_next(self, name: str) -> bool:
        """Of the forward stages here: a recomputed part whose output only a backward stage wants is not finished."""
        ahead = [s for s in (*self.step.recompute, *self.step.stages) if s.kind is Kind.APPLY and not s.backward]
        return any(name in part_reads(self.model, s.layer, s.part) for s in ahead)

    def _backward(self, layer: int, part: str) -> None:
        summands = [self.values[n] for n in output_gradients(self.model, layer, part) if n in self.values]
        grad = sum(summands[1:], start=summands[0])
        names = (f"grad_input{layer}",) if part == "project" else row_gradients(layer, self.model.layers[layer].reads)
        wanted = any(name in self.step.writes for name in names) or self._feeds_a_stage(names)
        row_grads, grads = pull_back(
            self.model.part(layer, part),
            self._weights(layer),
            self.inputs.masks,
            grad,
            tape=self.tapes[layer, part],
            want_rows=wanted,
        )
        self.values.update(zip(names, row_grads, strict=False))
        self.out.gradients.update({full_name(layer, name): g for name, g in grads.items()})

    def _feeds_a_stage(self, names: Sequence[str]) -> bool:
        behind = [s for s in self.step.stages if s.backward]
        return any(n in output_gradients(self.model, s.layer, s.part) for s in behind for n in names)


def pull_back(
    part: Part, weights: Weights, masks: Masks, grad: Array, *, tape: Sequence[tuple[Array, ...]], want_rows: bool
) -> tuple[tuple[Array, ...], Mapping[str, Array]]:
    """Gradients of a part's inputs and weights; below its lowest function with parameters only if `want_rows`."""
    owners = [i for i, f in enumerate(part) if f.parameters(*(x.shape[1] for x in tape[i]))]
    lowest = 0 if want_rows or not owners else owners[0]
    row_grads: tuple[Array, ...] = (grad,)
    grads: dict[str, Array] = {}
    for i in reversed(range(lowest, len(part))):
        wanted = want_rows or i > lowest
        row_grads, found = part[i].vjp(weights, masks, row_grads[0], *tape[i], want_rows=wanted)
        grads |= found
    return row_grads if want_rows else (), grads

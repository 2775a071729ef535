"""GIN: h' = act(MLP((1 + eps) h_v + sum over u of h_u)), MLP of two maps, eps learned, no self loops.

Source: Xu et al. 2019 (arXiv:1810.00826), eq. 4.1; without batch norm (a norm over every vertex is a later part).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from common.saga.arrays import Array, Weights
from common.saga.gathers import WeightedSum
from common.saga.layer import Layer, Model, ModelOptions, hidden_ending
from common.saga.masks import Masks
from common.saga.tensor_functions import (
    Activation,
    Bias,
    DropInputs,
    Elementwise,
    Gradients,
    Linear,
    Parameter,
    TensorFunction,
)

DEFAULTS: dict[str, object] = {"model.hidden_size": 64}


@dataclass(frozen=True)
class GatheredAndSelf(Elementwise):
    """gathered + (1 + eps) · self."""

    def parameters(self, *widths: int) -> tuple[Parameter, ...]:
        return (Parameter("eps", (1,), "zeros"),)

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array:
        gathered, own = rows
        return gathered + (1 + weights["eps"]) * own

    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients:
        _, own = rows
        grads = {"eps": np.sum(grad * own, keepdims=True).reshape(1)}
        return (grad, (1 + weights["eps"]) * grad), grads


@dataclass(frozen=True)
class SumThenLinear:
    """(gathered + (1 + eps) · self) W: linear in both terms, so both commute."""

    out: int
    pulls_rows: ClassVar[bool] = True
    """For eps its vjp needs the gradients of the rows, whoever wants them or not."""

    def _parts(self) -> tuple[GatheredAndSelf, Linear]:
        return GatheredAndSelf(), Linear(self.out, "weight1")

    def width(self, *widths: int) -> int:
        return self.out

    def parameters(self, *widths: int) -> tuple[Parameter, ...]:
        total, linear = self._parts()
        return (*total.parameters(*widths), *linear.parameters(*widths))

    def flops(self, *widths: int) -> int:
        return 2 * widths[0] * self.out

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array:
        total, linear = self._parts()
        return linear.forward(weights, masks, total.forward(weights, masks, *rows))

    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients:
        total, linear = self._parts()
        (grad_total,), grads = linear.vjp(weights, masks, grad, total.forward(weights, masks, *rows), want_rows=True)
        row_grads, eps = total.vjp(weights, masks, grad_total, *rows, want_rows=want_rows)
        return row_grads, grads | eps

    def commuted(self) -> tuple[TensorFunction, TensorFunction, tuple[str, ...]]:
        total, linear = self._parts()
        return linear, total, ("gathered", "projected")


def build(options: ModelOptions) -> Model:
    return Model("gin", options.num_features, tuple(_layer(options, n) for n in range(options.num_layers)))


def _layer(options: ModelOptions, n: int) -> Layer:
    out = options.out_width(n)
    first: TensorFunction = SumThenLinear(out)
    if n == 0 and options.dropout:
        first = DropInputs(first, options.dropout)
    mlp = (first, Bias("bias1"), Activation("relu"), Linear(out, "weight2"), Bias("bias2"))
    return Layer(
        gather=WeightedSum("sum"),
        update=(*mlp, *hidden_ending(options, n)),
        reads=("gathered", "self"),
    )

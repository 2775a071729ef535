"""Tensor functions: what a tensor stage computes on the rows of one interval, forward and backward.

A part of a layer is a row of tensor functions; the first may read several tensors, each later one reads the output of
the one before. `vjp` needs a function's inputs only, so nothing but a stage's inputs lives until its backward stage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from common.saga.arrays import Array, Weights
from common.saga.masks import Masks


@dataclass(frozen=True)
class Parameter:
    """One weight tensor; `fan` is (fan_in, fan_out) for Glorot's bound."""

    name: str
    shape: tuple[int, ...]
    init: Literal["glorot", "zeros"]
    fan: tuple[int, int] = (1, 1)


Gradients = tuple[tuple[Array, ...], dict[str, Array]]
"""Gradients of the input rows (in the order they are read, empty when not wanted) and of the weights by name."""


class TensorFunction(Protocol):
    """rows are [n, width] each, weights this function's own by local name."""

    def width(self, *widths: int) -> int: ...
    def parameters(self, *widths: int) -> tuple[Parameter, ...]: ...
    def flops(self, *widths: int) -> int:
        """Of one row, forward; linear maps only: the rest is a few per value. A vjp costs as much for the weights,
        and again for the rows where they are wanted, or always where the function says `pulls_rows = True`."""
        ...

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array: ...
    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients: ...


class Commutable(Protocol):
    """A first map of an update that is linear in `gathered`: it may move in front of the Scatter."""

    def width(self, *widths: int) -> int: ...
    def commuted(self) -> tuple[TensorFunction, TensorFunction, tuple[str, ...]]:
        """(project, what stays behind as first function, what that reads)."""
        ...


class Elementwise:
    """Shared by functions of one tensor that keep its width and own no weights."""

    def width(self, *widths: int) -> int:
        return widths[0]

    def parameters(self, *widths: int) -> tuple[Parameter, ...]:
        return ()

    def flops(self, *widths: int) -> int:
        return 0


@dataclass(frozen=True)
class Linear:
    """x W; commutable: W may be applied before the neighbours are summed."""

    out: int
    name: str = "weight"

    def width(self, *widths: int) -> int:
        return self.out

    def parameters(self, *widths: int) -> tuple[Parameter, ...]:
        return (Parameter(self.name, (widths[0], self.out), "glorot", (widths[0], self.out)),)

    def flops(self, *widths: int) -> int:
        return 2 * widths[0] * self.out

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array:
        return rows[0] @ weights[self.name]

    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients:
        row_grads = (grad @ weights[self.name].T,) if want_rows else ()
        return row_grads, {self.name: rows[0].T @ grad}

    def commuted(self) -> tuple[TensorFunction, TensorFunction, tuple[str, ...]]:
        return self, Identity(), ("gathered",)


@dataclass(frozen=True)
class Identity(Elementwise):
    """What stays behind of a commuted linear map."""

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array:
        return rows[0]

    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients:
        return (grad,), {}


@dataclass(frozen=True)
class Bias(Elementwise):
    name: str = "bias"

    def parameters(self, *widths: int) -> tuple[Parameter, ...]:
        return (Parameter(self.name, (widths[0],), "zeros"),)

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array:
        return rows[0] + weights[self.name]

    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients:
        return (grad,), {self.name: grad.sum(axis=0)}


@dataclass(frozen=True)
class Activation(Elementwise):
    kind: Literal["relu", "elu", "tanh"]

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array:
        x = rows[0]
        match self.kind:
            case "relu":
                return np.maximum(x, 0)
            case "elu":
                # e^b - 1 = 2 t / (1 - t) for t = tanh(b / 2): as exact near 0 as expm1, and several times as fast
                t = np.tanh(np.minimum(x, 0) / 2)
                return np.maximum(x, 0) + 2 * t / (1 - t)
            case "tanh":
                return np.tanh(x)

    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients:
        x = rows[0]
        match self.kind:
            case "relu":
                slope = (x > 0).astype(x.dtype)
            case "elu":
                slope = np.exp(np.minimum(x, 0))
            case "tanh":
                slope = 1 - np.tanh(x) ** 2
        return (grad * slope,), {}


@dataclass(frozen=True)
class Dropout(Elementwise):
    """`layer` is the layer whose input is dropped: 0 for the features, l + 1 at the end of layer l's update."""

    rate: float
    layer: int

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array:
        return masks.drop(rows[0], self.rate, self.layer)

    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients:
        return (masks.drop(grad, self.rate, self.layer),), {}


@dataclass(frozen=True)
class DropInputs:
    """Input dropout before a function of several tensors: a feature a vertex loses, it loses in each of them."""

    inner: TensorFunction
    rate: float
    layer: int = 0

    @property
    def pulls_rows(self) -> bool:
        return bool(getattr(self.inner, "pulls_rows", False))

    def width(self, *widths: int) -> int:
        return self.inner.width(*widths)

    def parameters(self, *widths: int) -> tuple[Parameter, ...]:
        return self.inner.parameters(*widths)

    def flops(self, *widths: int) -> int:
        return self.inner.flops(*widths)

    def _dropped(self, masks: Masks, rows: Sequence[Array]) -> list[Array]:
        return [masks.drop(x, self.rate, self.layer) for x in rows]

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array:
        return self.inner.forward(weights, masks, *self._dropped(masks, rows))

    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients:
        row_grads, grads = self.inner.vjp(weights, masks, grad, *self._dropped(masks, rows), want_rows=want_rows)
        return tuple(self._dropped(masks, row_grads)), grads

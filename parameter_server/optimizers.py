"""One step of SGD, Adam or AdamW on one parameter: pure, and element by element.

A step makes new arrays, so older weights versions stay valid; it works in the weight's dtype with exactly rounded
operations only (no pow, no fused multiply-add), so its bits depend on neither the CPU nor the sharding.
Semantics, and the order of the operations, are torch.optim's: weight decay reaches every parameter, biases included.
"""

import difflib
import math
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from common.errors import SpecError

Array = npt.NDArray[Any]
State = dict[str, Array]
NAMES = ("adam", "adamw", "sgd")


class Optimizer(Protocol):
    def state(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> State:
        """What the optimizer remembers of one parameter before its first step."""
        ...

    def step(self, weight: Array, gradient: Array, *, state: State, step_number: int) -> tuple[Array, State]:
        """The weight and the state after step `step_number` (from 1); `gradient` has the weight's shape and dtype."""
        ...


class Sgd(msgspec.Struct, frozen=True):
    """b = momentum·b + (g + wd·w);  w = w - lr·b.   Source: torch.optim.SGD, dampening 0, no Nesterov."""

    lr: float
    momentum: float = 0.0
    weight_decay: float = 0.0

    def state(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> State:
        return {"momentum": np.zeros(shape, dtype)} if self.momentum else {}

    def step(self, weight: Array, gradient: Array, *, state: State, step_number: int) -> tuple[Array, State]:
        direction = _decayed(gradient, weight, self.weight_decay)
        if not self.momentum:
            return weight - self.lr * direction, {}
        direction = self.momentum * state["momentum"] + direction
        return weight - self.lr * direction, {"momentum": direction}


class Adam(msgspec.Struct, frozen=True):
    """g = g + wd·w;  m = β1·m + (1-β1)·g;  v = β2·v + (1-β2)·g²;  w = w - lr/(1-β1^t) · m / (√v/√(1-β2^t) + ε).

    Source: Kingma & Ba 2015 (arXiv:1412.6980), as torch.optim.Adam writes it.
    """

    lr: float
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def state(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> State:
        return {"mean": np.zeros(shape, dtype), "square": np.zeros(shape, dtype)}

    def step(self, weight: Array, gradient: Array, *, state: State, step_number: int) -> tuple[Array, State]:
        return self.move(weight, _decayed(gradient, weight, self.weight_decay), state=state, step_number=step_number)

    def move(self, weight: Array, gradient: Array, *, state: State, step_number: int) -> tuple[Array, State]:
        """The step without weight decay."""
        mean = self.beta1 * state["mean"] + (1.0 - self.beta1) * gradient
        square = self.beta2 * state["square"] + (1.0 - self.beta2) * (gradient * gradient)
        step_size = self.lr / (1.0 - _power(self.beta1, step_number))
        root = math.sqrt(1.0 - _power(self.beta2, step_number))
        moved = weight - step_size * (mean / (np.sqrt(square) / root + self.epsilon))
        return moved, {"mean": mean, "square": square}


class AdamW(msgspec.Struct, frozen=True):
    """w = (1 - lr·wd)·w, then Adam's step on the bare gradient.

    Source: Loshchilov & Hutter 2019 (arXiv:1711.05101), as torch.optim.AdamW writes it.
    """

    lr: float
    weight_decay: float = 0.0

    def state(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> State:
        return Adam(self.lr).state(shape, dtype)

    def step(self, weight: Array, gradient: Array, *, state: State, step_number: int) -> tuple[Array, State]:
        shrunk = weight * (1.0 - self.lr * self.weight_decay)
        return Adam(self.lr).move(shrunk, gradient, state=state, step_number=step_number)


def make_optimizer(name: str, lr: float, momentum: float = 0.0, weight_decay: float = 0.0) -> Optimizer:
    """Raises SpecError for an unknown name, and for a momentum that would be ignored."""
    if name in ("adam", "adamw") and momentum:
        raise SpecError(
            what=f"momentum = {momentum} with optimizer = '{name}'",
            why=f"{name} keeps its own running mean of the gradients (beta1 = 0.9)",
            fix="remove momentum, or set optimizer = 'sgd'",
        )
    match name:
        case "sgd":
            return Sgd(lr, momentum, weight_decay)
        case "adam":
            return Adam(lr, weight_decay)
        case "adamw":
            return AdamW(lr, weight_decay)
    near = difflib.get_close_matches(name, NAMES, n=1)
    raise SpecError(
        what=f"optimizer = '{name}'",
        why=f"there is no such optimizer; there are {', '.join(NAMES)}",
        fix=f"did you mean '{near[0]}'?" if near else "set optimizer to one of these",
    )


def _decayed(gradient: Array, weight: Array, weight_decay: float) -> Array:
    return gradient + weight_decay * weight if weight_decay else gradient


def _power(base: float, exponent: int) -> float:
    """base^exponent by squaring: C's pow may differ in the last bit from one machine to the next."""
    power = 1.0
    while exponent:
        if exponent & 1:
            power *= base
        base *= base
        exponent >>= 1
    return power

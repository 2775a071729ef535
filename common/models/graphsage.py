"""GraphSAGE with the mean aggregator: h' = act(mean over u of h_u · W_neighbour + h_v · W_self + b), no self loops.

Source: Hamilton et al. 2017 (arXiv:1706.02216), algorithm 1 on the whole neighbourhood; no row normalisation, as PyG.
"""

from dataclasses import dataclass

from common.saga.arrays import Array, Weights
from common.saga.gathers import WeightedSum
from common.saga.layer import Layer, Model, ModelOptions, hidden_ending
from common.saga.masks import Masks
from common.saga.tensor_functions import Bias, DropInputs, Gradients, Linear, Parameter, TensorFunction

DEFAULTS: dict[str, object] = {"model.hidden_size": 16}


@dataclass(frozen=True)
class NeighbourAndSelf:
    """gathered · W_neighbour + self · W_self. Only the neighbour matrix commutes with the Gather."""

    out: int
    neighbour_moved: bool = False

    def width(self, *widths: int) -> int:
        return self.out

    def parameters(self, *widths: int) -> tuple[Parameter, ...]:
        own = Parameter("weight_self", (widths[1], self.out), "glorot", (widths[1], self.out))
        if self.neighbour_moved:
            return (own,)
        return (Parameter("weight_neighbour", (widths[0], self.out), "glorot", (widths[0], self.out)), own)

    def flops(self, *widths: int) -> int:
        return 2 * self.out * (widths[1] + (0 if self.neighbour_moved else widths[0]))

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array:
        gathered, own = rows
        moved = gathered if self.neighbour_moved else gathered @ weights["weight_neighbour"]
        return moved + own @ weights["weight_self"]

    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients:
        gathered, own = rows
        grads = {"weight_self": own.T @ grad}
        if not self.neighbour_moved:
            grads["weight_neighbour"] = gathered.T @ grad
        if not want_rows:
            return (), grads
        grad_gathered = grad if self.neighbour_moved else grad @ weights["weight_neighbour"].T
        return (grad_gathered, grad @ weights["weight_self"].T), grads

    def commuted(self) -> tuple[TensorFunction, TensorFunction, tuple[str, ...]]:
        stays = NeighbourAndSelf(self.out, neighbour_moved=True)
        return Linear(self.out, "weight_neighbour"), stays, ("gathered", "self")


def build(options: ModelOptions) -> Model:
    return Model("graphsage", options.num_features, tuple(_layer(options, n) for n in range(options.num_layers)))


def _layer(options: ModelOptions, n: int) -> Layer:
    first: TensorFunction = NeighbourAndSelf(options.out_width(n))
    if n == 0 and options.dropout:
        first = DropInputs(first, options.dropout)
    return Layer(
        gather=WeightedSum("mean"),
        update=(first, Bias(), *hidden_ending(options, n)),
        reads=("gathered", "self"),
    )

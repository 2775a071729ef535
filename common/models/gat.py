"""GAT: per head, out_v = sum over u of softmax_u(leaky(a_source · W h_u + a_target · W h_v)) · W h_u, then bias.

Hidden layers concatenate `num_heads` heads of `hidden_size`; the last layer has one head. Missing self loops are added.
Source: Velickovic et al. 2018 (arXiv:1710.10903), eq. 1-5.
"""

from dataclasses import dataclass

import numpy as np

from common.saga.arrays import Array, Weights
from common.saga.gathers import AdditiveScore, AttentionSum
from common.saga.layer import Layer, Model, ModelOptions, dropout, hidden_ending
from common.saga.masks import Masks
from common.saga.tensor_functions import Bias, Gradients, Parameter

DEFAULTS: dict[str, object] = {"model.hidden_size": 8, "model.num_heads": 8, "model.activation": "elu"}


@dataclass(frozen=True)
class ProjectWithScores:
    """x [W | W A] = [z | s | t]: the scores come out of the same product, A holding each head's two vectors."""

    heads: int
    head_width: int

    def width(self, *widths: int) -> int:
        return self.heads * (self.head_width + 2)

    def parameters(self, *widths: int) -> tuple[Parameter, ...]:
        z, vector = self.heads * self.head_width, (self.heads, self.head_width)
        return (
            Parameter("weight", (widths[0], z), "glorot", (widths[0], z)),
            Parameter("attention_source", vector, "glorot", vector),
            Parameter("attention_target", vector, "glorot", vector),
        )

    def flops(self, *widths: int) -> int:
        return 2 * widths[0] * self.width(*widths)

    def _scores(self, weights: Weights) -> Array:
        """A [heads · head_width, 2 · heads], block diagonal."""
        a = np.zeros((self.heads, self.head_width, 2, self.heads), weights["weight"].dtype)
        each = np.arange(self.heads)
        a[each, :, 0, each] = weights["attention_source"]
        a[each, :, 1, each] = weights["attention_target"]
        return a.reshape(self.heads * self.head_width, 2 * self.heads)

    def _matrix(self, weights: Weights) -> Array:
        return np.hstack([weights["weight"], weights["weight"] @ self._scores(weights)])

    def forward(self, weights: Weights, masks: Masks, *rows: Array) -> Array:
        return rows[0] @ self._matrix(weights)

    def vjp(self, weights: Weights, masks: Masks, grad: Array, *rows: Array, want_rows: bool) -> Gradients:
        z, each = self.heads * self.head_width, np.arange(self.heads)
        grad_matrix = rows[0].T @ grad
        grad_z, grad_scores = grad_matrix[:, :z], grad_matrix[:, z:]
        grad_a = (weights["weight"].T @ grad_scores).reshape(self.heads, self.head_width, 2, self.heads)
        grads = {
            "weight": grad_z + grad_scores @ self._scores(weights).T,
            "attention_source": grad_a[each, :, 0, each],
            "attention_target": grad_a[each, :, 1, each],
        }
        return (grad @ self._matrix(weights).T,) if want_rows else (), grads


def build(options: ModelOptions) -> Model:
    return Model("gat", options.num_features, tuple(_layer(options, n) for n in range(options.num_layers)))


def _layer(options: ModelOptions, n: int) -> Layer:
    heads, head_width = 1 if options.is_last(n) else options.num_heads, options.out_width(n)
    input_dropout = dropout(options.dropout, 0) if n == 0 else ()
    return Layer(
        project=(*input_dropout, ProjectWithScores(heads, head_width)),
        edge=AdditiveScore(slope=0.2),
        gather=AttentionSum(heads, head_width, options.attention_dropout),
        update=(Bias(), *hidden_ending(options, n)),
    )

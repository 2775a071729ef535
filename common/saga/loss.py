"""The loss of a node classification, and what evaluation counts.

loss = sum over train entries of w_c · l / sum over train entries of w_c, over the whole graph. An interval gives its
part of both sums in float64; the training clock adds them along its tree.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from common.saga.arrays import Array

TRAIN, VALID, TEST = 1, 2, 4
MASK_BITS: Mapping[str, int] = {"train": TRAIN, "valid": VALID, "test": TEST}
"""The bits of a vertex's byte in the tensor `masks`."""


@dataclass(frozen=True)
class LossOptions:
    """Global facts, the same for every interval."""

    class_weights: tuple[float, ...]
    total_weight: float
    """Sum of w_c over the train entries of the whole graph."""


def balanced_weights(train_class_counts: tuple[int, ...]) -> tuple[float, ...]:
    """w_c = n / (present classes · n_c), as scikit-learn's `balanced`; a class without train vertices: 0."""
    present = sum(count > 0 for count in train_class_counts)
    total = sum(train_class_counts)
    return tuple(total / (present * count) if count else 0.0 for count in train_class_counts)


def loss_options(class_weights: tuple[float, ...], train_class_counts: tuple[int, ...]) -> LossOptions:
    total = sum(w * n for w, n in zip(class_weights, train_class_counts, strict=True))
    return LossOptions(class_weights, float(total))


def softmax_cross_entropy(
    logits: Array, labels: Array, masks: Array, options: LossOptions
) -> tuple[dict[str, float], Array]:
    """The interval's sums, and the gradient of the loss by the logits [n, classes] (0 outside the train mask).

    labels [n, 1] int64, -1 = unlabelled, in no sum; masks [n, 1] uint8 of MASK_BITS.
    """
    label, mask = labels[:, 0], masks[:, 0]
    each, known = np.arange(len(label)), label >= 0
    target = np.where(known, label, 0)
    shifted = logits - logits.max(axis=1, keepdims=True)
    exp = np.exp(shifted)
    normaliser = exp.sum(axis=1, keepdims=True)
    cross_entropy = np.log(normaliser[:, 0]) - shifted[each, target]
    in_train = known & ((mask & TRAIN) != 0)
    weight = np.where(in_train, np.asarray(options.class_weights)[target], 0.0)

    sums = {"loss": float((weight * cross_entropy).sum()), "loss_weight": float(weight.sum())}
    correct = known & (logits.argmax(axis=1) == label)
    for name, bit in MASK_BITS.items():
        chosen = known & ((mask & bit) != 0)
        sums[f"{name}_correct"] = float((correct & chosen).sum())
        sums[f"{name}_count"] = float(chosen.sum())

    grad = exp / normaliser
    grad[each, target] -= 1
    grad *= (weight / options.total_weight).astype(logits.dtype)[:, None]
    return sums, grad

"""The loss of each task.

loss = sum over train entries of w_c · l / sum over train entries of w_c, over the whole graph. An entry is a labelled
vertex or, where a vertex has several outputs, one labelled output of it; c is its class, or the output. An interval
gives its part of both sums in float64; the training clock adds them along its tree.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from common.saga.arrays import Array
from common.saga.tasks import Metric, Task

TRAIN, VALID, TEST = 1, 2, 4
MASK_BITS: Mapping[str, int] = {"train": TRAIN, "valid": VALID, "test": TEST}
"""The bits of a vertex's byte in the tensor `masks`."""

Loss = tuple[dict[str, float], Array]
"""The interval's sums `loss` and `loss_weight`, and the gradient of the loss by the logits, 0 outside train entries."""


@dataclass(frozen=True)
class LossOptions:
    """Global facts, the same for every interval."""

    class_weights: tuple[float, ...]
    """Of each class, or of each output."""
    total_weight: float
    """Sum of w_c over the train entries of the whole graph."""
    task: Task = "multi_class"
    metric: Metric = "accuracy"


def balanced_weights(train_class_counts: tuple[int, ...]) -> tuple[float, ...]:
    """w_c = n / (present classes · n_c), as scikit-learn's `balanced`; a class without train entries: 0."""
    present = sum(count > 0 for count in train_class_counts)
    total = sum(train_class_counts)
    return tuple(total / (present * count) if count else 0.0 for count in train_class_counts)


def loss_options(
    class_weights: tuple[float, ...],
    train_class_counts: tuple[int, ...],
    *,
    task: Task = "multi_class",
    metric: Metric = "accuracy",
) -> LossOptions:
    """train_class_counts: train entries of each class, or of each output."""
    total = sum(w * n for w, n in zip(class_weights, train_class_counts, strict=True))
    return LossOptions(class_weights, float(total), task, metric)


def loss_and_gradient(logits: Array, truth: Array, masks: Array, options: LossOptions) -> Loss:
    """logits [n, outputs]; truth as in TRUTH; masks [n, 1] uint8 of MASK_BITS."""
    match options.task:
        case "multi_class":
            return softmax_cross_entropy(logits, truth, masks, options)
        case "multi_label":
            return sigmoid_cross_entropy(logits, truth, masks, options)
        case "regression":
            return squared_error(logits, truth, masks, options)


def softmax_cross_entropy(logits: Array, labels: Array, masks: Array, options: LossOptions) -> Loss:
    """labels [n, 1] int64, -1 = unlabelled, in no sum."""
    label, mask = labels[:, 0], masks[:, 0]
    each, known = np.arange(len(label)), label >= 0
    target = np.where(known, label, 0)
    # transposed: class after class over all rows is several times as fast as row after row
    shifted = logits - logits.T.copy().max(axis=0)[:, None]
    exp = np.exp(shifted)
    normaliser = exp.sum(axis=1, keepdims=True)
    cross_entropy = np.log(normaliser[:, 0]) - shifted[each, target]
    in_train = known & ((mask & TRAIN) != 0)
    weight = np.where(in_train, np.asarray(options.class_weights)[target], 0.0)

    grad = exp / normaliser
    grad[each, target] -= 1
    grad *= (weight / options.total_weight).astype(logits.dtype)[:, None]
    return _sums(weight, cross_entropy), grad


def sigmoid_cross_entropy(logits: Array, targets: Array, masks: Array, options: LossOptions) -> Loss:
    """targets [n, outputs] of 0, 1 and NaN = unlabelled, in no sum."""
    known = ~np.isnan(targets)
    target = np.where(known, targets, 0).astype(logits.dtype)
    small = np.exp(-np.abs(logits))  # never above 1, so nothing overflows
    cross_entropy = np.maximum(logits, 0) - logits * target + np.log1p(small)
    weight = _entry_weights(known, masks, options)

    sigmoid = np.where(logits >= 0, 1, small) / (1 + small)
    grad = (sigmoid - target) * (weight / options.total_weight).astype(logits.dtype)
    return _sums(weight, cross_entropy), grad


def squared_error(logits: Array, targets: Array, masks: Array, options: LossOptions) -> Loss:
    """targets [n, outputs] of numbers and NaN = unlabelled, in no sum."""
    known = ~np.isnan(targets)
    error = logits.astype(np.float64) - np.where(known, targets, 0)
    weight = _entry_weights(known, masks, options)
    return _sums(weight, error**2), (2 * error * (weight / options.total_weight)).astype(logits.dtype)


def _entry_weights(known: Array, masks: Array, options: LossOptions) -> Array:
    return np.where(known & ((masks & TRAIN) != 0), np.asarray(options.class_weights), 0.0)


def _sums(weight: Array, each: Array) -> dict[str, float]:
    return {"loss": float((weight * each).sum()), "loss_weight": float(weight.sum())}

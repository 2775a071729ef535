"""Binary cross-entropy and squared error are what a plain loop over the labelled train entries says, in float64."""

import math

import numpy as np
import pytest

from common.saga.loss import TRAIN, loss_and_gradient, loss_options
from common.saga.metric_sums import metric_sums

ROWS, OUTPUTS = 30, 4
TASKS = ("multi_label", "regression")
WEIGHTS = {"multi_label": (0.5, 0.0, 2.0, 1.0), "regression": (1.0,) * OUTPUTS}


def interval(task: str, seed: int = 0):
    """(outputs, targets, masks, options): some entries unknown, one whole row, masks of every kind."""
    random = np.random.default_rng(seed)
    outputs = random.normal(scale=3, size=(ROWS, OUTPUTS))
    targets = random.normal(size=(ROWS, OUTPUTS)) if task == "regression" else random.integers(0, 2, (ROWS, OUTPUTS))
    targets = np.where(random.random((ROWS, OUTPUTS)) < 0.2, np.nan, targets)
    targets[3] = np.nan
    masks = random.integers(0, 8, (ROWS, 1)).astype(np.uint8)
    masks[3] = 7
    known = ~np.isnan(targets) & ((masks & TRAIN) > 0)
    options = loss_options(WEIGHTS[task], tuple(known.sum(axis=0).tolist()), task=task, metric="auto")
    return outputs, targets, masks, options


def naive_loss(outputs, targets, masks, options) -> tuple[float, float]:
    """(sum of w·l, sum of w), entry by entry."""
    total = weights = 0.0
    for row, column in np.ndindex(outputs.shape):
        z, y, weight = float(outputs[row, column]), float(targets[row, column]), options.class_weights[column]
        if math.isnan(y) or not masks[row, 0] & TRAIN:
            continue
        share = 1 / (1 + math.exp(-z))
        is_number = options.task == "regression"
        total += weight * ((z - y) ** 2 if is_number else -y * math.log(share) - (1 - y) * math.log(1 - share))
        weights += weight
    return total, weights


@pytest.mark.parametrize("task", TASKS)
def test_against_a_plain_loop(task: str):
    outputs, targets, masks, options = interval(task)
    sums, _ = loss_and_gradient(outputs, targets, masks, options)
    total, weights = naive_loss(outputs, targets, masks, options)
    assert math.isclose(sums["loss"], total, rel_tol=1e-12)
    assert sums["loss_weight"] == weights == options.total_weight


@pytest.mark.parametrize("task", TASKS)
def test_the_gradient_is_the_derivative(task: str):
    outputs, targets, masks, options = interval(task)
    _, grad = loss_and_gradient(outputs, targets, masks, options)
    for place in np.ndindex(outputs.shape):
        ends = []
        for sign in (1, -1):
            moved = outputs.copy()
            moved[place] += sign * 1e-6
            total, weights = naive_loss(moved, targets, masks, options)
            ends.append(total / weights)
        assert abs(grad[place] - (ends[0] - ends[1]) / 2e-6) < 1e-7


@pytest.mark.parametrize("task", TASKS)
def test_an_unlabelled_entry_is_in_no_sum(task: str):
    outputs, targets, masks, options = interval(task)
    before = loss_and_gradient(outputs, targets, masks, options)
    counted = metric_sums(outputs, targets, masks, options)
    unknown = np.isnan(targets)
    outputs[unknown] = 1000.0
    after = loss_and_gradient(outputs, targets, masks, options)
    assert before[0] == after[0]
    assert np.array_equal(before[1], after[1])
    assert not after[1][unknown].any()
    assert metric_sums(outputs, targets, masks, options) == counted


@pytest.mark.parametrize("task", TASKS)
def test_parts_of_intervals_add_up(task: str):
    outputs, targets, masks, options = interval(task)
    whole, grad = loss_and_gradient(outputs, targets, masks, options)
    parts = [
        loss_and_gradient(outputs[rows], targets[rows], masks[rows], options)
        for rows in (slice(0, 13), slice(13, ROWS), slice(ROWS, ROWS))
    ]
    assert np.array_equal(np.concatenate([part[1] for part in parts]), grad)
    for name, value in whole.items():
        assert math.isclose(sum(part[0][name] for part in parts), value, rel_tol=1e-14)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_gradient_bears_the_dtype_of_the_outputs(task: str, dtype):
    outputs, targets, masks, options = interval(task)
    _, grad = loss_and_gradient(outputs.astype(dtype), targets.astype(np.float32), masks, options)
    assert grad.dtype == dtype


def test_large_logits_do_not_overflow():
    logits, targets = np.array([[1e4, -1e4, 1e4, -1e4]], np.float32), np.array([[1, 0, 0, 1]], np.float32)
    options = loss_options((1.0,) * 4, (1,) * 4, task="multi_label", metric="roc_auc")
    with np.errstate(all="raise", under="ignore"):
        sums, grad = loss_and_gradient(logits, targets, np.ones((1, 1), np.uint8), options)
    assert sums["loss"] == 2e4
    assert grad.tolist() == [[0.0, 0.0, 0.25, -0.25]]

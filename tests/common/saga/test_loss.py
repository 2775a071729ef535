"""The loss is what a plain loop over the train entries says, in float64."""

import math

import numpy as np
import pytest

from common.saga.loss import TEST, TRAIN, VALID, balanced_weights, loss_options, softmax_cross_entropy
from common.saga.metric_sums import metric_sums

ROWS, CLASSES = 40, 5


@pytest.fixture
def interval():
    """(logits, labels, masks): every combination of masks, some labels unknown."""
    random = np.random.default_rng(0)
    logits = random.normal(scale=3, size=(ROWS, CLASSES))
    labels = random.integers(-1, CLASSES, (ROWS, 1))
    masks = random.integers(0, 8, (ROWS, 1)).astype(np.uint8)
    return logits, labels, masks


def counts(labels, masks) -> tuple[int, ...]:
    train = labels[(masks & TRAIN) > 0]
    return tuple(int((train == c).sum()) for c in range(CLASSES))


def naive_loss(logits, labels, masks, weights) -> tuple[float, float]:
    """(sum of w·l, sum of w) over the labelled train vertices."""
    total = weight_sum = 0.0
    for row, label, mask in zip(logits.tolist(), labels[:, 0].tolist(), masks[:, 0].tolist(), strict=True):
        if label >= 0 and mask & TRAIN:
            total += weights[label] * (math.log(sum(math.exp(x) for x in row)) - row[label])
            weight_sum += weights[label]
    return total, weight_sum


WEIGHTS = {"one": (1.0,) * CLASSES, "some": (0.5, 0.0, 2.0, 1.0, 3.5)}


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_against_a_plain_loop(interval, weights):
    logits, labels, masks = interval
    options = loss_options(weights, counts(labels, masks))
    sums, _ = softmax_cross_entropy(logits, labels, masks, options)
    total, weight_sum = naive_loss(logits, labels, masks, weights)
    assert math.isclose(sums["loss"], total, rel_tol=1e-13)
    assert math.isclose(sums["loss_weight"], weight_sum, rel_tol=1e-15)
    assert math.isclose(options.total_weight, weight_sum, rel_tol=1e-15)


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS.keys())
def test_the_gradient_is_the_derivative(interval, weights):
    logits, labels, masks = interval
    options = loss_options(weights, counts(labels, masks))
    _, grad = softmax_cross_entropy(logits, labels, masks, options)
    for place in np.ndindex(logits.shape):
        ends = []
        for sign in (1, -1):
            moved = logits.copy()
            moved[place] += sign * 1e-6
            total, weight_sum = naive_loss(moved, labels, masks, weights)
            ends.append(total / weight_sum)
        assert abs(grad[place] - (ends[0] - ends[1]) / 2e-6) < 1e-8


def test_the_counts(interval):
    logits, labels, masks = interval
    sums = metric_sums(logits, labels, masks, loss_options(WEIGHTS["one"], counts(labels, masks)))
    for name, bit in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        chosen = [n for n in range(ROWS) if labels[n, 0] >= 0 and masks[n, 0] & bit]
        assert sums[f"{name}_count"] == len(chosen)
        assert sums[f"{name}_correct"] == sum(int(logits[n].argmax()) == labels[n, 0] for n in chosen)
        assert 0 < sums[f"{name}_correct"] < sums[f"{name}_count"]


def test_an_unlabelled_vertex_is_in_no_sum(interval):
    """Whatever its masks and logits are."""
    logits, labels, masks = interval
    options = loss_options(WEIGHTS["some"], counts(labels, masks))
    before, grad = softmax_cross_entropy(logits, labels, masks, options)
    unknown = labels[:, 0] < 0
    logits[unknown] = 100 * np.arange(CLASSES)
    masks[unknown] = TRAIN | VALID | TEST
    after, grad_after = softmax_cross_entropy(logits, labels, masks, options)
    assert unknown.sum() > 2
    assert before == after
    assert np.array_equal(grad, grad_after)
    assert not grad[unknown].any()


def test_the_gradient_is_zero_outside_train(interval):
    logits, labels, masks = interval
    _, grad = softmax_cross_entropy(logits, labels, masks, loss_options(WEIGHTS["one"], counts(labels, masks)))
    in_train = (labels[:, 0] >= 0) & ((masks[:, 0] & TRAIN) > 0)
    assert not grad[~in_train].any()
    assert grad[in_train].any(axis=1).all()


def test_parts_of_intervals_add_up(interval):
    logits, labels, masks = interval
    options = loss_options(WEIGHTS["some"], counts(labels, masks))
    whole, grad = softmax_cross_entropy(logits, labels, masks, options)
    parts = [softmax_cross_entropy(logits[r], labels[r], masks[r], options) for r in (slice(0, 13), slice(13, ROWS))]
    assert np.array_equal(np.concatenate([part[1] for part in parts]), grad)
    for name, value in whole.items():
        assert math.isclose(parts[0][0][name] + parts[1][0][name], value, rel_tol=1e-14)


def test_an_empty_interval():
    empty = np.zeros((0, 1), np.int64)
    sums, grad = softmax_cross_entropy(
        np.zeros((0, CLASSES), np.float32), empty, empty.astype(np.uint8), loss_options(WEIGHTS["one"], (1,) * CLASSES)
    )
    assert grad.shape == (0, CLASSES)
    assert set(sums.values()) == {0.0}


def test_large_logits_do_not_overflow():
    logits = np.array([[1e4, -1e4, 0]], np.float32)
    one = np.ones((1, 1))
    for label in range(3):
        sums, grad = softmax_cross_entropy(
            logits, label * one.astype(np.int64), one.astype(np.uint8), loss_options((1.0,) * 3, (1, 0, 0))
        )
        assert sums["loss"] == [0, 2e4, 1e4][label]
        assert np.isfinite(grad).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_gradient_bears_the_logits_dtype(interval, dtype):
    logits, labels, masks = interval
    options = loss_options(WEIGHTS["some"], counts(labels, masks))
    assert softmax_cross_entropy(logits.astype(dtype), labels, masks, options)[1].dtype == dtype


def test_sums_are_float64_though_logits_are_not():
    """100,000 equal parts of a sum: in float32 they would be off by more than a part."""
    count = 100_000
    logits = np.zeros((count, 3), np.float32)
    labels, masks = np.zeros((count, 1), np.int64), np.ones((count, 1), np.uint8)
    sums, _ = softmax_cross_entropy(logits, labels, masks, loss_options((1.0,) * 3, (count, 0, 0)))
    assert math.isclose(sums["loss"], count * float(np.log(np.float32(3))), rel_tol=1e-12)


def test_balanced_is_n_over_classes_times_count():
    """scikit-learn's: n_samples / (n_classes · bincount(y)), over the classes that occur."""
    assert balanced_weights((2, 1, 5)) == (8 / 6, 8 / 3, 8 / 15)
    assert balanced_weights((2, 0, 6)) == (8 / 4, 0.0, 8 / 12)


def test_balanced_weights_give_every_class_the_same_share():
    given = (2, 1, 5, 0)
    weights = balanced_weights(given)
    assert np.allclose([w * n for w, n in zip(weights, given, strict=True)], [8 / 3, 8 / 3, 8 / 3, 0])
    assert math.isclose(loss_options(weights, given).total_weight, 8)

"""Every metric is scikit-learn's, however the rows are spread over intervals; and what it does where that has none."""

import numpy as np
import pytest
from sklearn import metrics as sklearn

from common.saga.loss import MASK_BITS, LossOptions
from common.saga.metric_sums import metric_sums
from common.saga.tasks import METRICS, OF_ROWS
from parameter_server.metrics import JudgedRows, average_precision, metric, roc_auc
from parameter_server.tree_sum import sum_by_name

ROWS = 90
SKLEARN = {
    "f1_micro": lambda truth, answers, _: sklearn.f1_score(truth, answers, average="micro", zero_division=0),
    "f1_macro": lambda truth, answers, _: sklearn.f1_score(truth, answers, average="macro", zero_division=0),
    "accuracy": lambda truth, answers, _: sklearn.accuracy_score(truth, answers),
    "rmse": lambda truth, answers, _: sklearn.root_mean_squared_error(truth, answers),
    "mae": lambda truth, answers, _: sklearn.mean_absolute_error(truth, answers),
    "average_precision": lambda truth, _, scores: sklearn.average_precision_score(truth, scores),
    "roc_auc": lambda truth, _, scores: sklearn.roc_auc_score(truth, scores, multi_class="ovr"),
}


def softmax(logits: np.ndarray) -> np.ndarray:
    exp = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return exp / exp.sum(axis=1, keepdims=True)


def judged(name: str, task: str, logits: np.ndarray, truth: np.ndarray, masks: np.ndarray, *, parts: int = 1):
    """By mask, with the rows in so many intervals, some of them empty."""
    options = LossOptions((1.0,) * logits.shape[1], 1.0, task, name)
    ends = np.sort(np.random.default_rng(parts).integers(0, len(logits) + 1, parts - 1))
    split = list(zip(*(np.split(array, ends) for array in (logits, truth, masks)), strict=True))
    totals = sum_by_name([metric_sums(*part, options) for part in split])
    rows = [JudgedRows(*part) for part in split] if name in OF_ROWS else []
    return {mask: metric(name, task, totals, rows, mask) for mask in MASK_BITS}


def cases(task: str, width: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits with ties, and every third vertex in each mask; all classes and labels occur in each."""
    random = np.random.default_rng(seed)
    logits = random.integers(-8, 9, (ROWS, width)).astype(np.float32) / 4
    if task == "multi_class":
        truth = (np.arange(ROWS) // 3 % width)[:, None]
    elif task == "multi_label":
        truth = random.integers(0, 2, (ROWS, width)).astype(np.float32)
    else:
        truth = random.normal(size=(ROWS, width)).astype(np.float32)
    return logits, truth, np.array([1, 2, 4], np.uint8)[np.arange(ROWS) % 3][:, None]


def oracle(name: str, task: str, logits: np.ndarray, truth: np.ndarray) -> float:
    if task == "multi_class":
        two = logits.shape[1] == 2
        scores = logits[:, 1] - logits[:, 0] if two else softmax(logits)
        return SKLEARN[name](truth[:, 0], logits.argmax(axis=1), scores)
    if task == "regression":
        return SKLEARN[name](truth.astype(np.float64), logits.astype(np.float64), logits)
    if name.startswith("f1") and logits.shape[1] == 1:  # which it would take for two classes
        return sklearn.f1_score(truth[:, 0], logits[:, 0] > 0)
    return SKLEARN[name](truth, logits > 0, logits)


@pytest.mark.parametrize("parts", [1, 5])
@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize(("task", "name"), [(task, name) for task, names in METRICS.items() for name in names])
def test_against_scikit_learn(task: str, name: str, width: int, parts: int):
    if width == 1 and task == "multi_class":
        pytest.skip("one class is nothing to tell apart")
    for seed in range(4):
        logits, truth, masks = cases(task, width, seed)
        found = judged(name, task, logits, truth, masks, parts=parts)
        for mask, bit in MASK_BITS.items():
            of_mask = masks[:, 0] == bit
            assert found[mask] == pytest.approx(oracle(name, task, logits[of_mask], truth[of_mask]), rel=1e-12)


@pytest.mark.parametrize(("task", "name"), [(task, name) for task, names in METRICS.items() for name in names])
def test_the_number_of_parts_changes_no_bit_of_a_ranking_and_little_of_a_sum(task: str, name: str):
    logits, truth, masks = cases(task, 3, 7)
    ones = [judged(name, task, logits, truth, masks, parts=parts)["valid"] for parts in (1, 2, 7, 40)]
    assert ones == pytest.approx([ones[0]] * 4, rel=1e-14)
    if name not in ("rmse", "mae"):
        assert len(set(ones)) == 1


def test_classes_that_occur_nowhere_do_not_lower_the_macro_f1():
    """scikit-learn averages over the labels it meets."""
    logits = np.eye(5, dtype=np.float32)[[0, 1, 1, 0]]
    truth, masks = np.array([[0], [1], [0], [-1]]), np.full((4, 1), 2, np.uint8)
    expected = sklearn.f1_score([0, 1, 0], [0, 1, 1], average="macro")
    assert judged("f1_macro", "multi_class", logits, truth, masks)["valid"] == pytest.approx(expected)


def test_a_label_that_nobody_has_lowers_the_macro_f1_as_in_scikit_learn():
    logits, truth = np.array([[1, -1], [1, -1]], np.float32), np.array([[1, 0], [1, 0]], np.float32)
    masks = np.full((2, 1), 4, np.uint8)
    expected = sklearn.f1_score(truth, logits > 0, average="macro", zero_division=0)
    assert judged("f1_macro", "multi_label", logits, truth, masks)["test"] == expected == 0.5


@pytest.mark.parametrize("name", METRICS["multi_label"])
def test_unknown_labels_are_left_out_one_by_one(name: str):
    logits, truth, masks = cases("multi_label", 3, 11)
    masks[:] = 2
    truth[np.random.default_rng(0).random(truth.shape) < 0.3] = np.nan
    found = judged(name, "multi_label", logits, truth, masks)["valid"]
    known = ~np.isnan(truth)
    if name == "accuracy":
        expected = (((logits > 0) == (truth == 1)) | ~known).all(axis=1)[known.any(axis=1)].mean()
    elif name == "f1_micro":
        expected = sklearn.f1_score(truth[known], logits[known] > 0)
    else:
        of_one = {"roc_auc": sklearn.roc_auc_score, "average_precision": sklearn.average_precision_score}.get(
            name, lambda right, scores: sklearn.f1_score(right, scores > 0)
        )
        columns = [(truth[known[:, k], k], logits[known[:, k], k]) for k in range(3)]
        expected = np.mean([of_one(right, scores) for right, scores in columns])
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("task", "name"), [(task, name) for task, names in METRICS.items() for name in names])
def test_an_empty_mask_has_no_metric(task: str, name: str):
    logits, truth, masks = cases(task, 3, 0)
    masks[masks == 4] = 0
    assert judged(name, task, logits, truth, masks, parts=3)["test"] is None


def test_what_cannot_be_ranked_is_left_out_of_the_mean():
    scores, right = np.array([0.1, 0.4, 0.3]), np.array([False, True, True])
    assert roc_auc(scores, ~np.ones(3, bool)) is roc_auc(scores, np.ones(3, bool)) is None
    assert average_precision(scores, np.zeros(3, bool)) is None
    logits = np.stack([scores, scores], axis=1).astype(np.float32)
    truth = np.stack([right, np.ones(3)], axis=1).astype(np.float32)
    masks = np.full((3, 1), 2, np.uint8)
    assert judged("roc_auc", "multi_label", logits, truth, masks)["valid"] == roc_auc(scores, right)


def test_scores_that_all_tie_are_worth_a_coin():
    right = np.array([True, False, False, True, False])
    assert roc_auc(np.zeros(5), right) == 0.5
    assert average_precision(np.zeros(5), right) == 2 / 5

"""From what all intervals counted, or from the rows of a mask, to one number. Pure; the meaning is scikit-learn's.

f1_micro, f1_macro          f1_score; of classes, macro leaves those out that are neither predicted nor there
roc_auc, average_precision  roc_auc_score, average_precision_score: of each label, then the plain mean; of several
                            classes each against the rest, by softmax; of two classes the second
rmse, mae                   root_mean_squared_error, mean_absolute_error: of each output, then the plain mean

Entries without a label are in none of them; a label that leaves nothing to rank is left out of the mean.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from common.epoch_metrics import EpochMetrics
from common.saga.loss import MASK_BITS
from common.saga.tasks import OF_ROWS, Metric, Task
from parameter_server.epoch_metrics import accuracy

Array = npt.NDArray[Any]
Sums = Mapping[str, float]


class JudgedRows(NamedTuple):
    """The rows of one interval that are in a mask: logits [n, outputs]; labels [n, 1] or targets [n, outputs]; masks
    [n, 1]."""

    logits: Array
    truth: Array
    masks: Array


def metric(name: Metric, task: Task, totals: Sums, rows: Sequence[JudgedRows], mask: str) -> float | None:
    """rows: of every interval, in order; only a metric of rows reads them. None: there is nothing to judge."""
    if name in OF_ROWS:
        return _ranked(name, task, rows, MASK_BITS[mask])
    if name == "accuracy":
        return accuracy(totals, mask)
    if name in ("rmse", "mae"):
        return _error(name, totals, mask)
    return _f1(totals, mask, skips_absent=task == "multi_class")


def epoch_metrics(
    metrics: EpochMetrics, name: Metric, task: Task, totals: Sums, rows: Sequence[JudgedRows] = ()
) -> EpochMetrics:
    """`metrics` of epoch and loss, with what the sums and the rows of all intervals say."""
    accuracies = {f"{mask}_accuracy": accuracy(totals, mask) for mask in MASK_BITS} if task != "regression" else {}
    judged = {f"{mask}_metric": metric(name, task, totals, rows, mask) for mask in MASK_BITS}
    return msgspec.structs.replace(metrics, **accuracies, **judged)


def _error(name: Metric, totals: Sums, mask: str) -> float | None:
    pairs = zip(_each(totals, f"{mask}_error"), _each(totals, f"{mask}_count"), strict=True)
    means = [error / count for error, count in pairs if count]
    return _mean([float(np.sqrt(mean)) if name == "rmse" else mean for mean in means])


def _f1(totals: Sums, mask: str, *, skips_absent: bool) -> float | None:
    if not totals.get(f"{mask}_count", 0.0):
        return None
    hits = zip(*(_each(totals, f"{mask}_{hit}") for hit in ("tp", "fp", "fn")), strict=True)
    scores = [(2 * tp, 2 * tp + fp + fn) for tp, fp, fn in hits]
    return _mean([hit / all_ if all_ else 0.0 for hit, all_ in scores if all_ or not skips_absent])


def _each(totals: Sums, name: str) -> Iterator[float]:
    place = 0
    while (key := f"{name}_{place}") in totals:
        yield totals[key]
        place += 1


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


# ---- ranking


def _ranked(name: Metric, task: Task, rows: Sequence[JudgedRows], bit: int) -> float | None:
    if not rows:
        return None
    logits, truth, masks = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    chosen = (masks[:, 0] & bit) != 0
    rank = roc_auc if name == "roc_auc" else average_precision
    columns = _columns(logits[chosen], truth[chosen], task)
    return _mean([found for scores, right in columns if (found := rank(scores, right)) is not None])


def _columns(logits: Array, truth: Array, task: Task) -> Iterator[tuple[Array, Array]]:
    """(scores, whether it is right) of each label or class, unlabelled rows left out."""
    if task == "multi_label":
        for scores, targets in zip(logits.T, truth.T, strict=True):
            known = ~np.isnan(targets)
            yield scores[known], targets[known] == 1
        return
    known = truth[:, 0] >= 0
    logits, labels = logits[known].astype(np.float64), truth[known, 0]
    if logits.shape[1] == 2:
        yield logits[:, 1] - logits[:, 0], labels == 1
        return
    exp = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    shares = exp / exp.sum(axis=1, keepdims=True)
    for number in range(logits.shape[1]):
        yield shares[:, number], labels == number


def roc_auc(scores: Array, right: Array) -> float | None:
    """Area under the ROC curve; None unless there are both kinds. Source: Mann and Whitney 1947, ties at half."""
    num_right = int(right.sum())
    num_wrong = len(right) - num_right
    if not num_right or not num_wrong:
        return None
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle_ranks = np.cumsum(counts) - (counts - 1) / 2
    rank_sum = middle_ranks[place][right].sum()
    return float((rank_sum - num_right * (num_right + 1) / 2) / (num_right * num_wrong))


def average_precision(scores: Array, right: Array) -> float | None:
    """Sum over thresholds of the recall gained there times the precision; None where nothing is right."""
    num_right = int(right.sum())
    if not num_right:
        return None
    _, place, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    gained = np.bincount(place, weights=right, minlength=len(counts))
    precision = np.cumsum(gained) / np.cumsum(counts)
    return float((gained * precision).sum() / num_right)

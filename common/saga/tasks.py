"""What is learnt of a vertex, and by which numbers it is judged.

multi_class   one class of several; softmax cross-entropy
multi_label   any number of labels, each there or not; binary cross-entropy of each
regression    numbers; squared error
"""

from collections.abc import Mapping
from typing import Literal

Task = Literal["multi_class", "multi_label", "regression"]
Metric = Literal["accuracy", "roc_auc", "rmse", "f1_micro", "f1_macro", "average_precision", "mae"]

TRUTH: Mapping[Task, str] = {"multi_class": "labels", "multi_label": "targets", "regression": "targets"}
"""The tensor of what is right: labels int64 [n, 1], -1 = unlabelled; targets float [n, outputs], NaN = unlabelled."""

_OF_CLASSES: tuple[Metric, ...] = ("f1_micro", "f1_macro", "average_precision")
METRICS: Mapping[Task, tuple[Metric, ...]] = {
    "multi_class": ("accuracy", "roc_auc", *_OF_CLASSES),
    "multi_label": ("roc_auc", "accuracy", *_OF_CLASSES),
    "regression": ("rmse", "mae"),
}
"""Those that a task has; the first is its usual one."""

OF_ROWS = frozenset({"roc_auc", "average_precision"})
"""Not a function of sums: the rows of a mask have to be ranked together."""

LOWER_IS_BETTER = frozenset({"rmse", "mae"})

"""What an interval counts for the metrics, by mask: sums over labelled entries that the training clock adds up.

classes      <mask>_correct, <mask>_count: vertices, all of whose known labels are right
f1           <mask>_tp_<k>, _fp_<k>, _fn_<k> of each class or label; f1_micro: of all together, k = 0
regression   <mask>_error_<k>, <mask>_count_<k> of each output: squared errors for rmse, absolute ones for mae
"""

import numpy as np

from common.saga.arrays import Array
from common.saga.loss import MASK_BITS, LossOptions

Sums = dict[str, float]


def metric_sums(logits: Array, truth: Array, masks: Array, options: LossOptions) -> Sums:
    """logits [n, outputs]; truth and masks as of the loss."""
    chosen = {name: (masks & bit) != 0 for name, bit in MASK_BITS.items()}
    if options.task == "regression":
        found = _errors(logits, truth, chosen, squared=options.metric == "rmse")
    else:
        found = _right_ones(logits, truth, chosen, is_multi_label=options.task == "multi_label")
        if options.metric in ("f1_micro", "f1_macro"):
            found |= _hits(logits, truth, chosen, options)
    return found


def _errors(outputs: Array, targets: Array, chosen: dict[str, Array], *, squared: bool) -> Sums:
    known = ~np.isnan(targets)
    error = np.abs(outputs.astype(np.float64) - np.where(known, targets, 0))
    each, sums = error**2 if squared else error, Sums()
    for name, mask in chosen.items():
        judged = known & mask
        sums |= _named(f"{name}_error", np.where(judged, each, 0.0).sum(axis=0))
        sums |= _named(f"{name}_count", judged.sum(axis=0))
    return sums


def _right_ones(logits: Array, truth: Array, chosen: dict[str, Array], *, is_multi_label: bool) -> Sums:
    if is_multi_label:
        known = ~np.isnan(truth)
        right, judged = (((logits > 0) == (truth == 1)) | ~known).all(axis=1), known.any(axis=1)
    else:
        right, judged = logits.argmax(axis=1) == truth[:, 0], truth[:, 0] >= 0
    sums = Sums()
    for name, mask in chosen.items():
        of_mask = judged & mask[:, 0]
        sums[f"{name}_correct"] = float((right & of_mask).sum())
        sums[f"{name}_count"] = float(of_mask.sum())
    return sums


def _hits(logits: Array, truth: Array, chosen: dict[str, Array], options: LossOptions) -> Sums:
    """A label is predicted when it is more likely than not; a class when it is the likeliest, the first of equals."""
    if options.task == "multi_label":
        predicted, actual, known = logits > 0, truth == 1, ~np.isnan(truth)
    else:
        classes = np.arange(logits.shape[1])
        predicted, actual, known = logits.argmax(axis=1)[:, None] == classes, truth == classes, truth >= 0
    axis, sums = 0 if options.metric == "f1_macro" else None, Sums()
    for hit, where in (("tp", predicted & actual), ("fp", predicted & ~actual), ("fn", ~predicted & actual)):
        for name, mask in chosen.items():
            sums |= _named(f"{name}_{hit}", np.atleast_1d((where & known & mask).sum(axis=axis)))
    return sums


def _named(name: str, values: Array) -> Sums:
    return {f"{name}_{place}": float(value) for place, value in enumerate(values)}

"""predictions.parquet: what the best weights version says about every vertex, in the user's order and words."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow

from common.saga.loss import MASK_BITS
from graph_server.graph.folder_reader import GraphFolder


def predictions(folder: GraphFolder, logits: npt.NDArray[np.float32]) -> pyarrow.Table:
    """One row per vertex, in the order of the user's file.

    logits  [V, classes] in relabelled order

    id         the user's id
    label      multi_class: the user's value of its class; multi_label: list of 0 and 1; regression: the number, a list
               of several; null where it is not known
    predicted  the same: the class with the largest logit, the first of equals; the labels that are more likely than
               not; the number itself
    logits     list of float32, one per class in the order of the sorted labels, or one per column of the labels
    mask       train, valid, test or null
    """
    rank = folder.cut.rank
    truth, masks = (_all(folder, name)[rank] for name in ("labels", "masks"))
    logits = logits[rank]
    label, predicted = _answers(folder, truth, logits)
    columns = {
        "id": pyarrow.array(folder.ids[rank]),
        "label": label,
        "predicted": predicted,
        "logits": _lists(logits),
        "mask": _mask_words(masks),
    }
    return pyarrow.table(columns)


def _answers(
    folder: GraphFolder, truth: npt.NDArray[Any], logits: npt.NDArray[np.float32]
) -> tuple[pyarrow.Array, pyarrow.Array]:
    """(label, predicted)"""
    match folder.manifest.task:
        case "multi_class":
            values = pyarrow.array(list(folder.manifest.class_values))
            known = pyarrow.array(truth, mask=truth < 0)
            return values.take(known), values.take(pyarrow.array(logits.argmax(axis=1)))
        case "multi_label":
            unknown = np.isnan(truth)
            there = np.where(unknown, 0, truth).astype(np.int8)
            return _lists(there, unknown), _lists((logits > 0).astype(np.int8))
        case "regression":
            unknown = np.isnan(truth)
            if logits.shape[1] > 1:
                return _lists(truth, unknown), _lists(logits)
            return pyarrow.array(truth[:, 0], mask=unknown[:, 0]), pyarrow.array(logits[:, 0])


def _all(folder: GraphFolder, name: str) -> npt.NDArray[Any]:
    """One array of all intervals, in relabelled order."""
    return np.concatenate([folder.array(interval, name) for interval in range(folder.num_intervals)])


def _lists(rows: npt.NDArray[Any], unknown: npt.NDArray[np.bool_] | None = None) -> pyarrow.ListArray:
    num_rows, width = rows.shape
    # Offsets of an Arrow list have 32 bits; what is larger goes into a large list.
    small = num_rows * width < 2**31
    offsets = np.arange(num_rows + 1, dtype=np.int64) * width
    kind = pyarrow.ListArray if small else pyarrow.LargeListArray
    values = pyarrow.array(
        np.ascontiguousarray(rows).reshape(-1), mask=None if unknown is None else unknown.reshape(-1)
    )
    return kind.from_arrays(offsets.astype(np.int32 if small else np.int64), values)


def _mask_words(masks: npt.NDArray[np.uint8]) -> pyarrow.Array:
    place = np.full(len(masks), -1)
    for number, bit in enumerate(MASK_BITS.values()):
        place[masks & bit != 0] = number
    return pyarrow.array(list(MASK_BITS)).take(pyarrow.array(place, mask=place < 0))

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
    label      the user's value of its class, null if it is unlabelled
    predicted  the user's value of the class with the largest logit, the first of equals
    logits     list of float32, one per class, in the order of the sorted labels
    mask       train, valid, test or null
    """
    rank = folder.cut.rank
    values = pyarrow.array(list(folder.manifest.class_values))
    labels, masks = (_all(folder, name)[rank] for name in ("labels", "masks"))
    logits = logits[rank]
    columns = {
        "id": pyarrow.array(folder.ids[rank]),
        "label": values.take(pyarrow.array(labels, mask=labels < 0)),
        "predicted": values.take(pyarrow.array(logits.argmax(axis=1))),
        "logits": _lists(logits),
        "mask": _mask_words(masks),
    }
    return pyarrow.table(columns)


def _all(folder: GraphFolder, name: str) -> npt.NDArray[Any]:
    """One array of all intervals, in relabelled order."""
    return np.concatenate([folder.array(interval, name) for interval in range(folder.num_intervals)])


def _lists(rows: npt.NDArray[np.float32]) -> pyarrow.ListArray:
    num_rows, width = rows.shape
    # Offsets of an Arrow list have 32 bits; what is larger goes into a large list.
    small = num_rows * width < 2**31
    offsets = np.arange(num_rows + 1, dtype=np.int64) * width
    kind = pyarrow.ListArray if small else pyarrow.LargeListArray
    return kind.from_arrays(offsets.astype(np.int32 if small else np.int64), np.ascontiguousarray(rows).reshape(-1))


def _mask_words(masks: npt.NDArray[np.uint8]) -> pyarrow.Array:
    place = np.full(len(masks), -1)
    for number, bit in enumerate(MASK_BITS.values()):
        place[masks & bit != 0] = number
    return pyarrow.array(list(MASK_BITS)).take(pyarrow.array(place, mask=place < 0))

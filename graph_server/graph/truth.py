"""What is right, as a graph folder holds it: labels int64 [rows], -1 = unlabelled; or targets float32 [rows, outputs],
NaN = unlabelled."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graph_server.graph.csr import Bools


def known(truth: npt.NDArray[Any]) -> Bools:
    """Of the same shape: which entries have a label."""
    return truth >= 0 if truth.ndim == 1 else ~np.isnan(truth)


def count_entries(truth: npt.NDArray[Any], rows: Bools, num_classes: int) -> tuple[int, ...]:
    """Labelled entries of these rows: of each class, or of each output."""
    chosen = truth[rows]
    if truth.ndim == 1:
        return tuple(np.bincount(chosen[known(chosen)], minlength=num_classes).tolist())
    return tuple(known(chosen).sum(axis=0).tolist())

"""What a format's reader hands over: the file's content, nothing changed.

Policies (direction, duplicates, normalisation, splits, missing values) are `dataset.py`'s business, so that every
format gets the same treatment and every change is counted in one place.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from common.errors import DatasetError
from common.saga.tasks import Task

Array = np.ndarray[Any, Any]
ReaderDefaults = Mapping[str, Mapping[str, object]]

MASK_NAMES = ("train", "valid", "test")


class NegativeWeights(NamedTuple):
    """where: file and unit; lines: the first few; first: the weight on the first of them."""

    where: str
    lines: Array
    num: int
    first: float

    def __str__(self) -> str:
        return f"{self.where} {first_few(self.lines)}: {self.num} negative weights, the first {self.first:g}"

    def and_more(self, found: "NegativeWeights | str") -> "NegativeWeights":
        """With those of a later piece of the same file; other files' are left out."""
        if isinstance(found, str) or found.where != self.where:
            return self
        return self._replace(lines=np.concatenate([self.lines, found.lines])[:FEW], num=self.num + found.num)


class EdgeWeights(NamedTuple):
    """values [E] float32, finite; negative: where negative ones stand, or nothing."""

    values: Array
    negative: NegativeWeights | str = ""


@dataclass(frozen=True)
class RawGraph:
    """One graph as its file holds it."""

    format: str
    node_ids: Array
    """[N] int64 or str: the user's ids, in row order."""
    sources: Array
    targets: Array
    """[E] int64 row indices, in file order."""
    features: Array | scipy.sparse.csr_matrix | None
    """[N, F] numbers; NaN = missing."""
    labels: Array | None
    """[N] or [N, k] int, float with NaN, or str; -1, NaN, "" = unlabelled."""
    masks: Mapping[str, Array] | None = None
    """bool [N] each: train, valid, test."""
    edges_are_a_set: bool = False
    task: Task | None = None
    """None: the labels have to tell."""
    undirected: bool | None = None
    """None: the format does not say."""
    usual_normalization: str = "none"
    """"none", "row" or "standard"."""
    defaults: ReaderDefaults = field(default_factory=dict)
    """model name -> {dotted spec key: value}: settings known to work."""
    notes: tuple[str, ...] = ()
    why_no_features: str = ""
    why_no_labels: str = ""
    """What the file lacks, for the error of a job that needs it."""
    edge_type: str | None = None
    node_type: str | None = None
    """Which part of a heterogeneous file this is."""
    weights: EdgeWeights | None = None
    """Of the edges, by `dataset.edge_weight`; None: every edge counts the same."""

    @property
    def num_nodes(self) -> int:
        return len(self.node_ids)

    @property
    def num_edges(self) -> int:
        return len(self.sources)


FEW = 11
"""One more than are shown."""


def first_few(values: Array, limit: int = 10) -> str:
    """The first values as text, with dots when there are more."""
    shown = ", ".join(str(value) for value in values[:limit].tolist())
    return shown + (", ..." if len(values) > limit else "")


def damaged(path: object, reason: object) -> DatasetError:
    """The error for a file that breaks off or does not decode."""
    return DatasetError(
        what=f"{path} cannot be read: {reason}",
        why="the file is truncated, damaged or not what its name says",
        fix="fetch it again and compare its size or checksum with the source",
    )

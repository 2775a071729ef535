"""What a checkpoint holds: one shard's rows, and what the training clock has to remember. Taken at a pause only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ShardState:
    """Rows of one parameter server, or of all of them joined.

    version    the weights version of `weights`; each optimizer step makes the next
    optimizer  parameter -> the optimizer's own names -> rows
    best       the rows of the best version so far; None if nothing was evaluated
    """

    version: int
    weights: Mapping[str, Array]
    optimizer: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    best: Mapping[str, Array] | None = None


class ClockRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The training clock when every interval had finished `epoch` and nothing was in flight."""

    epoch: int
    version: int
    """Weights version after it."""
    loss: float = 0.0
    """Training loss of `epoch`."""
    best_epoch: int | None = None
    best_version: int | None = None
    best_metric: float | None = None
    reference: float | None = None
    """The metric against which improvement is measured, for early stopping."""
    evaluations_without_improvement: int = 0
    is_exact: bool = False
    """async has become pipe."""


@dataclass(frozen=True)
class Resumed:
    """Where a run goes on: a checkpoint, `state` being the rows of whoever goes on with it."""

    state: ShardState
    clock: ClockRecord

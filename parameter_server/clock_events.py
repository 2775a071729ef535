"""What the training clock is set to, and what it answers. Frozen and without behaviour."""

import enum

import msgspec

from common.epoch_metrics import EpochMetrics
from common.errors import SpecError
from common.passes import Pass
from common.saga.tasks import LOWER_IS_BETTER, Metric, Task
from parameter_server.saved_state import ClockRecord


class ClockSettings(msgspec.Struct, frozen=True, kw_only=True):
    num_epochs: int
    eval_frequency: int = 1
    """Epochs between evaluations; 0: only at the end. The last epoch is always evaluated."""
    use_early_stop: bool = False
    early_stop_rounds: int = 20
    """Evaluations without improvement after which training ends."""
    early_stop_min_delta: float = 0.0
    target_metric: float | None = None
    """Training ends when the valid metric is at least as good."""
    metric: Metric = "accuracy"
    task: Task = "multi_class"
    staleness: int | None = None
    """Of async; None: every epoch ends with a pause (sync, pipe)."""
    async_until: float | None = None
    """From this valid metric on every epoch ends with a pause."""
    gradient_window: int | None = None
    """How many intervals may end an epoch out of order; see gradient_gate.py. None: all."""
    checkpoint_frequency: int = 0
    """Epochs between checkpoints; 0: none, not even at the end."""

    @property
    def higher_is_better(self) -> bool:
        return self.metric not in LOWER_IS_BETTER


class ClockState(enum.Enum):
    READY = "Ready"
    TRAINING = "Training"
    EVALUATING = "Evaluating"
    PREDICTING = "Predicting"
    COMPLETED = "Completed"
    STOPPED = "Stopped"
    FAILED = "Failed"


class PassOpened(msgspec.Struct, frozen=True):
    """For all intervals; nothing else is in flight."""

    pass_: Pass


class IntervalsMayBegin(msgspec.Struct, frozen=True):
    """Async: each of these intervals may begin its train pass, with the weights version that the pass names."""

    grants: tuple[tuple[int, Pass], ...]
    exact_until: int
    """Up to this epoch a Gather reads rows of its own epoch only."""


class MayEnd(msgspec.Struct, frozen=True):
    """Intervals whose places in line lie below this may begin the last backward task of their epoch: see
    gradient_gate.py."""

    ends_below: int


class EpochEnded(msgspec.Struct, frozen=True):
    metrics: EpochMetrics


class BestChanged(msgspec.Struct, frozen=True):
    """Keep `version`, then release `previous` (None: there was none)."""

    version: int
    previous: int | None


class BecameExact(msgspec.Struct, frozen=True):
    """async_until was reached: from this epoch on, after this weights version, every epoch ends with a pause and one
    optimizer step."""

    epoch: int
    version: int


class CheckpointDue(msgspec.Struct, frozen=True):
    """Write it before the next event: nothing is in flight now."""

    record: ClockRecord


class Stopped(msgspec.Struct, frozen=True):
    """The last event. `state` is COMPLETED, STOPPED or FAILED; a failed job may have no best version. With one
    optimizer step per epoch, versions are epochs."""

    state: ClockState
    reason: str
    best_version: int | None
    last_version: int
    best_epoch: int | None = None
    last_epoch: int = 0


ClockEvent = PassOpened | IntervalsMayBegin | MayEnd | EpochEnded | BestChanged | BecameExact | CheckpointDue | Stopped


def check_valid_mask(settings: ClockSettings, num_valid: int) -> None:
    """Call before the start. Raises SpecError if a setting needs a valid metric and no entry is in the valid mask."""
    watched = {
        "use_early_stop": settings.use_early_stop,
        "target_metric": settings.target_metric is not None,
        "async_until": settings.async_until is not None,
    }
    key = next((key for key, is_set in watched.items() if is_set), None)
    if num_valid == 0 and key is not None:
        raise SpecError(
            what=f"training.{key} is set, but the valid mask is empty",
            why="it looks at the metric over the valid mask",
            fix=f"remove {key}, or give the dataset a valid mask (dataset.split)",
        )

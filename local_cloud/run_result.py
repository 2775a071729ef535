"""What a run tells while it goes, and what it gives at its end; the same for one process and for many."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from common.saga.arrays import Array
from common.trace import StepRecord
from common.wire.channel import Traffic
from parameter_server.epoch_metrics import EpochMetrics
from parameter_server.training_clock import Stopped


@dataclass(frozen=True)
class Status:
    """While it runs."""

    tasks_in_flight: int
    cost_usd: float


@dataclass(frozen=True)
class Totals:
    """Of all roles. `kernels`: what they compute with; with more than one, bits may differ from run to run."""

    counts: Mapping[str, int] = field(default_factory=dict)
    kernels: frozenset[str] = frozenset()
    peak_pss_bytes: int = 0
    lambda_gb_seconds: float = 0.0
    lambda_requests: int = 0


@dataclass(frozen=True)
class RunResult:
    """logits [V, classes] in relabelled order, of the best version; None if the run failed or was cut short."""

    stopped: Stopped
    best: Mapping[str, Array] | None
    last: Mapping[str, Array]
    logits: Array | None
    traffic: Traffic
    intervals_per_server: tuple[int, ...]
    ghosts_per_server: tuple[int, ...]
    totals: Totals = field(default_factory=Totals)


@dataclass(frozen=True)
class Watch:
    """What a run tells while it goes. `stoppable` is handed a function that ends it at the next pause."""

    on_epoch: Callable[[EpochMetrics], None] = lambda _: None
    record: Callable[[StepRecord], None] = lambda _: None
    stoppable: Callable[[Callable[[], None]], None] = lambda _: None
    """Called inside the loop, in the task whose cancellation ends the run at once."""
    cut_short: Callable[[RunResult], None] = lambda _: None
    """Called before an error or a cancellation is raised: what there is."""
    status: Callable[[Status], None] = lambda _: None
    """About once a second, where roles are processes."""

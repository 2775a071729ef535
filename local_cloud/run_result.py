"""What a run tells while it goes, and what it gives at its end; the same for one process and for many."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from common.epoch_metrics import EpochMetrics
from common.saga.arrays import Array
from common.trace import LeaseDecision, StepRecord
from common.wire.channel import Traffic
from parameter_server.clock_events import Stopped


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

    def __add__(self, other: "Totals") -> "Totals":
        """Of two starts of a job, one after the other."""
        names = self.counts.keys() | other.counts.keys()
        return Totals(
            {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in names},
            self.kernels | other.kernels,
            max(self.peak_pss_bytes, other.peak_pss_bytes),
            self.lambda_gb_seconds + other.lambda_gb_seconds,
            self.lambda_requests + other.lambda_requests,
        )


@dataclass(frozen=True)
class Load:
    """What runs now, and what was used so far."""

    tasks_in_flight: int
    open_leases: int
    totals: Totals


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

    def after(self, traffic: Traffic, totals: Totals) -> "RunResult":
        """With what starts before this one have used."""
        payload, overhead = traffic.payload + self.traffic.payload, traffic.overhead + self.traffic.overhead
        return replace(self, traffic=Traffic(payload, overhead), totals=totals + self.totals)


@dataclass(frozen=True)
class Watch:
    """What a run tells while it goes. `stoppable` is handed a function that ends it at the next pause, for a reason."""

    on_epoch: Callable[[EpochMetrics], None] = lambda _: None
    record: Callable[[StepRecord], None] = lambda _: None
    decided: Callable[[LeaseDecision], None] = lambda _: None
    stoppable: Callable[[Callable[[str], None]], None] = lambda _: None
    """Called inside the loop, in the task whose cancellation ends the run at once."""
    cut_short: Callable[[RunResult], None] = lambda _: None
    """Called before an error or a cancellation is raised: what there is."""
    load: Callable[[Load], None] = lambda _: None
    """About once a second."""
    rewound: Callable[[int], None] = lambda _: None
    """The job goes on after this epoch: later ones come again."""
    note: Callable[[str], None] = lambda _: None
    """Worth reading once."""

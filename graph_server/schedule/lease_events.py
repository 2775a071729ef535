"""What the lease book is told at its start, and the commands that come out of it."""

from dataclasses import dataclass
from typing import NamedTuple

from common.errors import ClusterError, TaskCrashed
from common.passes import Pass
from graph_server.schedule.idle_limit import IdleAfter
from graph_server.schedule.stragglers import LateAfter


class TaskKey(NamedTuple):
    pass_: Pass
    position: int
    interval: int


@dataclass(frozen=True)
class LeaseSettings:
    num_intervals: int
    """Of this graph server."""
    target: int
    """Leases wanted while there is work; at first, where their number is tuned."""
    max_tasks: int
    seconds: float
    """At the most: some end earlier, so that not all end together."""
    late: LateAfter
    max_losses: int
    """In LOSS_WINDOW_SECONDS; one more ends the job."""
    adopt_after_seconds: float
    """A task whose owner is busy waits so long before another lease takes it, and its constants move again."""
    idle: IdleAfter | None = None
    """None: an idle lease lives on."""
    least: int = 1
    """Bounds of a tuned target."""
    most: int = 0
    """0: it is not tuned."""
    phase: float = 0.0
    """From 0 to 1, another one for each graph server: when its leases end among those of the others."""
    open_after_seconds: float = 0.0
    """Leases are opened for tasks that have waited so long: somebody else may take them before."""


@dataclass(frozen=True)
class Open:
    lease: int


@dataclass(frozen=True)
class Send:
    """To a slot that asked. `attempt` is for traces."""

    lease: int
    task: TaskKey
    attempt: int


@dataclass(frozen=True)
class End:
    """Tell every slot of the lease that waits."""

    lease: int
    reason: str


@dataclass(frozen=True)
class GiveUp:
    error: ClusterError | TaskCrashed


LeaseCommand = Open | Send | End | GiveUp


@dataclass
class Counts:
    tasks: int = 0
    relaunches: int = 0
    repeats: int = 0
    """Results that came second and were dropped."""
    lost_leases: int = 0
    throttled: int = 0
    leases: int = 0
    handovers: int = 0
    """Intervals taken from a lease that lives: their constants moved once more."""
    idle: int = 0
    """Leases that were ended because they had nothing to do."""
    withdrawn: int = 0
    """Tasks that were taken back before a lease had them, or while theirs was late."""


@dataclass(frozen=True)
class LeaseLoad:
    """At one moment."""

    waiting: int
    """Tasks that no lease has."""
    opening: int
    live: int
    in_hand: int
    """Tasks that leases have."""
    slots: int
    """Full and empty, of those that live."""

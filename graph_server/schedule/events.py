"""What happens to a scheduler, and what it answers. Frozen and without behaviour; an interval is its global number."""

import enum
from dataclasses import dataclass

from common.passes import Pass


class Reason(enum.Enum):
    COMPLETED = "completed"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class ClockAdvanced:
    """The training clock opened a pass, for all intervals, at a pause: nothing is in flight."""

    pass_: Pass


@dataclass(frozen=True)
class IntervalMayBegin:
    """The training clock opened a train pass for one interval (async). `exact_until`: up to this epoch a Gather reads
    rows of its own epoch only."""

    pass_: Pass
    interval: int
    exact_until: int


@dataclass(frozen=True)
class IntervalsMayEnd:
    """An interval may begin the last task of train e if (e - 1) · intervals + interval is below this."""

    ends_below: int


@dataclass(frozen=True)
class StageDone:
    """A command was carried out; `position` is its step in the pass's program."""

    pass_: Pass
    position: int
    interval: int


@dataclass(frozen=True)
class GhostRowsArrived:
    """Rows of another graph server's interval stand in `table`."""

    pass_: Pass
    table: str
    interval: int


@dataclass(frozen=True)
class TaskLost:
    """A tensor task's attempt ended without a result, through no fault of the task."""

    pass_: Pass
    position: int
    interval: int


@dataclass(frozen=True)
class TaskFailed:
    """A task's own code raised."""

    pass_: Pass
    position: int
    interval: int
    error: BaseException


@dataclass(frozen=True)
class PeerLost:
    peer: str


@dataclass(frozen=True)
class ClockStopped:
    """The training clock ended the job; nothing is in flight."""

    reason: Reason


Event = (
    ClockAdvanced
    | IntervalMayBegin
    | IntervalsMayEnd
    | StageDone
    | GhostRowsArrived
    | TaskLost
    | TaskFailed
    | PeerLost
    | ClockStopped
)


@dataclass(frozen=True)
class Gather:
    pass_: Pass
    position: int
    interval: int


@dataclass(frozen=True)
class Apply:
    pass_: Pass
    position: int
    interval: int
    attempt: int


@dataclass(frozen=True)
class Scatter:
    pass_: Pass
    position: int
    interval: int


@dataclass(frozen=True)
class ReportFinished:
    """Tell the training clock that an interval has finished a pass."""

    pass_: Pass
    interval: int


@dataclass(frozen=True)
class Finish:
    reason: Reason
    error: BaseException | None = None


Command = Gather | Apply | Scatter | ReportFinished | Finish

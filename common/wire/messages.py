"""Every message between roles, one frozen struct each. Row buffers travel beside a message, raw, in the order stated.

Every request may be repeated: a repeat changes nothing and gets the same answer. `generation` grows with every start of
a job; a role speaks to its own generation only.
"""

from typing import Annotated

import msgspec

from common.epoch_metrics import EpochMetrics
from common.passes import Pass
from common.task_job import TaskJob

Count = Annotated[int, msgspec.Meta(ge=0)]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """Base of all; the tag is the class's name."""


class Done(Message):
    """The answer of a request that only had to arrive."""


class Refused(Message):
    """The request was understood and is not granted."""

    reason: str


class Superseded(Message):
    """The asked role belongs to this newer generation."""

    generation: Count


class Hello(Message):
    """The first message to a listener, answered with Welcome; by another generation's with Superseded."""

    job_id: str
    generation: Count
    name: str
    kernels: str = ""


class Welcome(Message):
    """So much may be unanswered at a time."""

    window_bytes: Count
    window_requests: Count


class Beat(Message):
    """From a role's own loop, answered with Done: it lives, not just its machine."""

    generation: Count
    role: str


class Admit(Message):
    """-> parameter server: this lease may speak from now on, showing what has this proof (no secret)."""

    generation: Count
    name: str
    proof: str


class Expel(Message):
    """-> parameter server: the lease is over."""

    generation: Count
    name: str


class GhostRows(Message):
    """Graph server -> graph server. Buffer: [rows, width], the rows of `interval` that the receiver holds as ghosts,
    ascending; in sync mode it may have no rows, for it also says that the interval was scattered."""

    generation: Count
    pass_: Pass
    table: str
    interval: Count


class PullWeights(Message):
    """-> parameter server, answered with Weights when the version is there. `missing`: updates that the pass lacks."""

    generation: Count
    version: Count
    missing: Count = 0


class Weights(Message):
    """Buffers: the shard's rows of each parameter, in the order of `names`."""

    version: Count
    names: tuple[str, ...]


class PushGradients(Message):
    """-> parameter server, answered with Done. Buffers: this shard's rows of each gradient, in the order of `names`."""

    generation: Count
    pass_: Pass
    stage: str
    interval: Count
    names: tuple[str, ...]


class IntervalFinished(Message):
    """Graph server -> parameter server 0: the interval's part of the sums of loss and metrics of this pass. Buffers, if
    the metric ranks rows: logits, truth and masks of those that are in a mask."""

    generation: Count
    pass_: Pass
    interval: Count
    sums: dict[str, float]


class AwaitClock(Message):
    """-> parameter server 0, answered with Clock as soon as it has moved past `seen`."""

    generation: Count
    seen: Count


class Grant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Async: an interval may begin this train pass; up to epoch `exact_until` it reads rows of its own epoch only."""

    interval: Count
    pass_: Pass
    exact_until: Count


class Clock(Message):
    """`ticks` counts the clock's moves; `pass_` is open now, or the job has `ended` (Completed, Stopped, Failed).
    `grants`: those made after `seen`, of each interval the newest. `ends_below`: places in line below it may begin the
    last backward task of their epoch; None: all may."""

    ticks: Count
    pass_: Pass | None
    ended: str | None = None
    reason: str = ""
    grants: tuple[Grant, ...] = ()
    ends_below: Count | None = None


class KeepVersion(Message):
    """Parameter server 0 -> the others: hold this weights version, then let go of `release`."""

    generation: Count
    version: Count
    release: int | None


class PullRows(Message):
    """-> graph server, answered with Rows: an own interval's rows of a tensor of this pass."""

    generation: Count
    pass_: Pass
    tensor: str
    interval: Count


class Rows(Message):
    """Buffer: [rows, width]."""


class AwaitEpochs(Message):
    """Launcher -> parameter server 0, answered with Epochs as soon as there are more than `seen`, or the job ends."""

    generation: Count
    seen: Count


class Epochs(Message):
    """Those after `seen`; `ended` as in Clock, with the best and the last weights version, unless a role is lost.
    `notes`: all so far."""

    epochs: tuple[EpochMetrics, ...]
    ended: str | None = None
    reason: str = ""
    best_version: int | None = None
    last_version: Count = 0
    best_epoch: int | None = None
    last_epoch: Count = 0
    is_lost: bool = False
    notes: tuple[str, ...] = ()


class RequestStop(Message):
    """Launcher -> parameter server 0: end at the next pause."""

    generation: Count
    reason: str = "stopped"


class WriteCheckpoint(Message):
    """Parameter server 0 -> all, at a pause: write your shard of this weights version; answered with ShardWritten."""

    generation: Count
    epoch: Count
    version: Count


class ShardWritten(Message):
    """Of a checkpoint. `error`: what, why and fix, if it could not be written; the other fields are then empty."""

    name: str = ""
    num_bytes: Count = 0
    sha256: str = ""
    error: tuple[str, str, str] | None = None


class LineUp(Message):
    """Parameter server 0 -> the others, one optimizer step per interval: the entries (interval, epoch, begins) of the
    line from `place` on, which all go through in the same order. `begins`: no step, but that interval pins the version
    reached there."""

    generation: Count
    place: Count
    entries: tuple[tuple[Count, Count, bool], ...]


class StepPerEpoch(Message):
    """Parameter server 0 -> all, at a pause at this weights version: from this epoch on one step per epoch."""

    generation: Count
    epoch: Count
    version: Count


class PullReport(Message):
    """Launcher -> any role, answered with RoleReport."""

    generation: Count


class RoleReport(Message):
    """Bytes by link as this role's listener counted them, and what it counted besides."""

    payload: dict[str, int]
    overhead: dict[str, int]
    counts: dict[str, int]
    kernels: tuple[str, ...] = ()
    peak_pss_bytes: Count = 0


class PullStatus(Message):
    """Launcher -> any role, answered with RoleStatus at once."""

    generation: Count


class RoleStatus(Message):
    """What a RoleReport would tell now, and what is in flight."""

    tasks_in_flight: Count
    payload: dict[str, int] = {}
    overhead: dict[str, int] = {}
    counts: dict[str, int] = {}


class LeaseHello(Message):
    """Function -> graph server, first of all; answered with LeaseWelcome. `held`: constants in its warm container."""

    generation: Count
    lease: Count
    kernels: str
    memory_mb: Count
    held: tuple[tuple[Count, str], ...]


class LeaseWelcome(Message):
    job: TaskJob


class NextTask(Message):
    """Function -> graph server: slot `slot` is free. Answered with Task when there is one, or LeaseOver. `ask` counts
    the slot's requests: the same ask gets the same answer. `evicted`: constants the function no longer keeps."""

    generation: Count
    lease: Count
    slot: Count
    ask: Count
    evicted: tuple[tuple[Count, str], ...] = ()


class Task(Message):
    """Buffers: the constants it lacks, then the rows, each [n, width], in the order of the names."""

    pass_: Pass
    position: Count
    interval: Count
    attempt: Count
    constants: tuple[str, ...]
    rows: tuple[str, ...]


class TaskDone(Message):
    """Function -> graph server, its gradients being with the parameter servers; answered as NextTask. Buffers: the
    output rows, in the order of `names`."""

    generation: Count
    lease: Count
    slot: Count
    ask: Count
    pass_: Pass
    position: Count
    interval: Count
    names: tuple[str, ...]
    sums: dict[str, float]
    seconds: float
    weights_bytes: Count
    gradient_bytes: Count
    evicted: tuple[tuple[Count, str], ...] = ()


class TaskError(Message):
    """Function -> graph server: the task's own code raised; answered as NextTask."""

    generation: Count
    lease: Count
    slot: Count
    ask: Count
    pass_: Pass
    position: Count
    interval: Count
    error: str
    evicted: tuple[tuple[Count, str], ...] = ()


class TaskLacks(Message):
    """Function -> graph server: constants it was believed to hold are gone; answered with the same Task and them."""

    generation: Count
    lease: Count
    slot: Count
    ask: Count
    pass_: Pass
    position: Count
    interval: Count
    names: tuple[str, ...]


class LeaseOver(Message):
    """No more tasks for this slot."""

    reason: str


AnyMessage = (
    Done
    | Refused
    | Superseded
    | Hello
    | Welcome
    | Beat
    | Admit
    | Expel
    | GhostRows
    | PullWeights
    | Weights
    | PushGradients
    | IntervalFinished
    | AwaitClock
    | Clock
    | KeepVersion
    | PullRows
    | Rows
    | AwaitEpochs
    | Epochs
    | RequestStop
    | WriteCheckpoint
    | ShardWritten
    | LineUp
    | StepPerEpoch
    | PullReport
    | RoleReport
    | PullStatus
    | RoleStatus
    | LeaseHello
    | LeaseWelcome
    | NextTask
    | Task
    | TaskDone
    | TaskError
    | TaskLacks
    | LeaseOver
)

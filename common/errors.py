"""Every error says what is wrong, why it matters and how to fix it.

DorylusError
  SpecError · DatasetError · ModelError                 found before training starts
  TensorTaskError: TaskTimedOut · TaskRejected · TaskCrashed (carries the remote traceback)
  WireError: PeerClosed · BadFrame (whose fault: ours or theirs) · DeadlineExceeded · RequestRefused
  ClusterError: PeerLost
  CheckpointError                                       none can be written, or read
  ScheduleError                                         a bug of ours; carries the interval's story
"""


class DorylusError(Exception):
    """what, why and fix are one sentence each, with the numbers; `fix` may be empty for a bug of ours."""

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        self.what, self.why, self.fix = what, why, fix
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [self.what]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)


class SpecError(DorylusError):
    """The job spec, or a flag, is wrong."""


class DatasetError(DorylusError):
    """The data cannot be trained on as it is."""


class ModelError(DorylusError):
    """The model and its options do not fit together."""


class TensorTaskError(DorylusError):
    """A tensor task ended without a result."""


class TaskTimedOut(TensorTaskError):
    """No result within the task's time."""


class TaskRejected(TensorTaskError):
    """The task was refused before it ran."""


class TaskCrashed(TensorTaskError):
    """The task's own code raised; `why` carries the traceback of where it ran."""


class WireError(DorylusError):
    """Two roles could not speak."""


class PeerClosed(WireError):
    """The peer is gone."""


class BadFrame(WireError):
    """A message does not decode or does not match its announced sizes."""


class DeadlineExceeded(WireError):
    """No answer in time; the request may be repeated, for all requests are idempotent."""


class RequestRefused(WireError):
    """The peer understood and said no; `why` is its reason."""


class ClusterError(DorylusError):
    """The job cannot go on with the roles it has."""


class PeerLost(ClusterError):
    """A role stopped answering."""


class CheckpointError(DorylusError):
    """A checkpoint cannot be written or read, or is another job's."""


class ScheduleError(DorylusError):
    """An illegal move of an interval: a bug of ours."""


def first_error(error: BaseException) -> BaseException:
    """What went wrong first, out of the groups that task groups wrap around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

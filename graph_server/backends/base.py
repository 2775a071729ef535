"""Where tensor tasks run. A backend is one file here with a class `Backend`; the scheduler knows only its places."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from common.passes import Pass
from common.saga.arrays import Array, Rows
from common.saga.compute import TaskOutputs
from common.saga.layer import Model
from common.saga.loss import LossOptions
from common.saga.program import Step
from common.task_job import TaskJob
from common.trace import LeaseDecision
from common.wire import messages
from common.wire.channel import Reply
from common.wire.clients import ParameterClient
from graph_server.cores import Cores
from graph_server.schedule.lease_events import LeaseSettings


@dataclass(frozen=True)
class TensorTask:
    """One try at one tensor stage of one interval in one pass. `rows` by the names in step.reads."""

    pass_: Pass
    step: Step
    position: int
    interval: int
    attempt: int
    rows: Rows
    ends_pass: bool = False
    """It is the last of its interval's train pass: with its result all gradients of that are said to be there."""
    give: Callable[["TaskResult"], None] = lambda _: None
    """A backend may give the result here and go on with what is left of the work; it returns the same in the end."""


@dataclass(frozen=True)
class TaskResult:
    """started, ended: time.monotonic(). When it is returned, its gradients are with the parameter servers."""

    outputs: TaskOutputs
    started: float
    ended: float
    weights_bytes: int
    gradient_bytes: int
    attempt: int = 1
    place: str = ""
    """Name of the backend where it ran, if that is not the one that was asked."""


class Invocation(Enum):
    """How an invocation of a function ended."""

    SERVED = "it served its lease"
    LOST = "killed, timed out, crashed or unreachable"
    THROTTLED = "refused above the concurrency"


Invoke = Callable[[int], Awaitable[Invocation]]
"""Start lease number n; returns when its invocation has ended."""


@dataclass(frozen=True)
class FunctionOptions:
    """What a backend of functions needs besides."""

    job: TaskJob
    leases: LeaseSettings
    invoke: Invoke
    constants: frozenset[str]
    """Names of tensors that never change."""
    own: frozenset[int] | None = None
    """Intervals of this graph server: a warm container may also hold another's. None: all there are."""
    server: int = 0
    """Number of this graph server, for what is decided about leases."""
    decided: Callable[[LeaseDecision], None] = lambda _: None


@dataclass(frozen=True)
class BackendOptions:
    """What every backend is made from. `threads`: cores it may use of this machine; `cores`: who does use them."""

    model: Model
    loss: LossOptions
    seed: int
    parameters: ParameterClient
    threads: int
    functions: FunctionOptions | None = None
    cores: Cores = field(default_factory=lambda: Cores(1))


class Backend(Protocol):
    name: str

    @property
    def places(self) -> int:
        """How many tasks may run at once."""
        ...

    @property
    def counts(self) -> dict[str, int]:
        """What it counted, for the summary: relaunches, lost_leases, ..."""
        ...

    @property
    def kernels(self) -> frozenset[str]:
        """Names of the numeric kernels that its tasks run with, as far as they are not this process's."""
        ...

    async def run(self, task: TensorTask) -> TaskResult:
        """Raises TensorTaskError. Gradients first, outputs last: a task that died in between is repeated unharmed."""
        ...

    async def serve(self) -> None:
        """What it does besides, until cancelled."""
        ...

    async def answer(self, message: messages.AnyMessage, buffers: list[Array]) -> Reply | None:
        """A message from what runs its tasks; None if it is none of its own."""
        ...

    async def close(self) -> None:
        """The job is over."""
        ...

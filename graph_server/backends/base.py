"""Where tensor tasks run. A backend is one file here with a class `Backend`; the scheduler knows only its places."""

from dataclasses import dataclass
from typing import Protocol

from common.passes import Pass
from common.saga.arrays import Rows
from common.saga.compute import TaskOutputs
from common.saga.layer import Model
from common.saga.loss import LossOptions
from common.saga.program import Step
from common.wire.clients import ParameterClient


@dataclass(frozen=True)
class TensorTask:
    """One try at one tensor stage of one interval in one pass. `rows` by the names in step.reads."""

    pass_: Pass
    step: Step
    interval: int
    attempt: int
    rows: Rows


@dataclass(frozen=True)
class TaskResult:
    """Its gradients are with the parameter servers; started and ended in the clock of `BackendOptions.now`."""

    outputs: TaskOutputs
    started: float
    ended: float
    weights_bytes: int
    gradient_bytes: int


@dataclass(frozen=True)
class BackendOptions:
    """What every backend is made from. `threads`: cores it may use of this machine."""

    model: Model
    loss: LossOptions
    seed: int
    parameters: ParameterClient
    threads: int


class Backend(Protocol):
    name: str

    @property
    def places(self) -> int:
        """How many tasks may run at once."""
        ...

    async def run(self, task: TensorTask) -> TaskResult:
        """Raises TensorTaskError. Gradients first, outputs last: a task that died in between is repeated unharmed."""
        ...

    def close(self) -> None: ...

"""Turns what a graph server did into trace records."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from common.saga.compute import TaskOutputs
from common.saga.program import Step
from common.trace import StepRecord
from graph_server.backends.base import TaskResult, TensorTask
from graph_server.schedule.events import StageDone
from graph_server.stages.held import Held

Times = tuple[float, float, float, float]
"""created, started, ended, received: time.monotonic()."""


@dataclass(frozen=True)
class StepBytes:
    """As the fields of StepRecord."""

    constants: int = 0
    rows_in: int = 0
    rows_out: int = 0
    weights: int = 0
    gradients: int = 0
    ghosts: int = 0


class StepRecorder:
    """`write` takes each record; times become seconds since this recorder was made."""

    def __init__(self, held: Held, write: Callable[[StepRecord], None]) -> None:
        self._held, self._write = held, write
        self._began = time.monotonic()
        self._moved: set[tuple[str, int]] = set()

    def graph_step(self, event: StageDone, step: Step, times: Times, *, ghosts: int = 0) -> None:
        self._record(event, step, times, StepBytes(ghosts=ghosts))

    def tensor_task(
        self, event: StageDone, task: TensorTask, result: TaskResult, times: Times, *, backend: str
    ) -> None:
        constants = self._held.programs.constants
        fresh = [name for name in task.rows if name in constants and self._is_first(name, event.interval)]
        moved = StepBytes(
            constants=sum(task.rows[name].nbytes for name in fresh),
            rows_in=sum(rows.nbytes for name, rows in task.rows.items() if name not in constants),
            rows_out=_num_bytes(result.outputs),
            weights=result.weights_bytes,
            gradients=result.gradient_bytes,
        )
        self._record(event, task.step, times, moved, backend=backend, attempt=result.attempt)

    def _record(
        self, event: StageDone, step: Step, times: Times, moved: StepBytes, *, backend: str = "", attempt: int = 1
    ) -> None:
        created, started, ended, received = (moment - self._began for moment in times)
        self._write(
            StepRecord(
                pass_=str(event.pass_),
                step=str(step),
                position=event.position,
                interval=event.interval,
                server=self._held.partition.server,
                backend=backend,
                attempt=attempt,
                created=created,
                started=started,
                ended=ended,
                received=received,
                constants=moved.constants,
                rows_in=moved.rows_in,
                rows_out=moved.rows_out,
                weights=moved.weights,
                gradients=moved.gradients,
                ghosts=moved.ghosts,
            )
        )

    def _is_first(self, name: str, interval: int) -> bool:
        """Constants are counted where they first move."""
        if (name, interval) in self._moved:
            return False
        self._moved.add((name, interval))
        return True


def _num_bytes(outputs: TaskOutputs) -> int:
    return sum(rows.nbytes for rows in outputs.rows.values())

"""Apply: an interval's rows go to a backend as a tensor task, its outputs come back into the tensor store."""

from common.passes import Pass, PassKind
from common.saga.compute import TaskOutputs
from common.saga.program import Kind, Step
from graph_server.backends.base import TensorTask
from graph_server.stages.held import Held


def tensor_task(held: Held, pass_: Pass, step: Step, *, position: int, interval: int, attempt: int) -> TensorTask:
    """The rows are views: nothing else writes them while the interval is at this step."""
    rows = {name: held.store.rows(pass_, name, interval) for name in step.reads}
    behind = held.programs.train.steps[position + 1 :]
    ends_pass = pass_.kind is PassKind.TRAIN and not any(step.kind is Kind.APPLY for step in behind)
    return TensorTask(pass_, step, position, interval, attempt, rows, ends_pass)


def take_outputs(held: Held, task: TensorTask, outputs: TaskOutputs) -> None:
    for name, block in outputs.rows.items():
        held.store.write(task.pass_, name, task.interval, block)

"""Who may do what next? Pure: an event comes in, commands go out; no clock, no I/O, time is an argument.

An interval walks through the steps of a pass's program. Before each step stands a gate:

pipe   a Gather waits for the rows *this interval* reads to bear this pass; every other step is free
sync   every step waits for all own intervals to have done the one before, a Gather for every interval everywhere

Open steps wait in two queues, graph steps and tensor tasks, served furthest-on first (later steps before earlier ones)
as places are free. A step that was done twice counts once. Source: Dorylus (OSDI'21), sections 4 and 5.
"""

import enum
import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from common.errors import ScheduleError
from common.passes import Pass, PassKind
from common.saga.program import Kind, Programs, Step
from graph_server.schedule.arrivals import Arrivals
from graph_server.schedule.events import (
    Apply,
    ClockAdvanced,
    ClockStopped,
    Command,
    Event,
    Finish,
    Gather,
    GhostRowsArrived,
    PeerLost,
    Reason,
    ReportFinished,
    Scatter,
    StageDone,
    TaskFailed,
    TaskLost,
)

Mode = Literal["sync", "pipe"]
STORY_LENGTH = 40
"""Events of an interval that an error of ours quotes."""


class State(enum.Enum):
    RESTING = "no pass is open, or it has finished it"
    AT_GATE = "waits for its next step's gate"
    READY = "waits in a queue"
    RUNNING = "its step is being carried out"


class Move(enum.Enum):
    PASS_OPENED = "a pass was opened"
    GATE_OPENED = "its gate opened"
    STARTED = "its step was started"
    STAGE_DONE = "its step was done"
    TASK_LOST = "its task's attempt was lost"
    PASS_DONE = "it has done the last step"


TRANSITIONS = {
    (State.RESTING, Move.PASS_OPENED): State.AT_GATE,
    (State.AT_GATE, Move.GATE_OPENED): State.READY,
    (State.READY, Move.STARTED): State.RUNNING,
    (State.RUNNING, Move.STAGE_DONE): State.AT_GATE,
    (State.RUNNING, Move.TASK_LOST): State.READY,  # relaunch: its inputs are still this interval's own rows
    (State.AT_GATE, Move.PASS_DONE): State.RESTING,
}


@dataclass
class Progress:
    """Where an interval is, and every event that touched it."""

    interval: int
    state: State = State.RESTING
    position: int = 0
    attempt: int = 0
    _story: deque[tuple[Move, int, object]] = field(default_factory=lambda: deque(maxlen=STORY_LENGTH))

    def move(self, move: Move, note: object = "") -> None:
        after = TRANSITIONS.get((self.state, move))
        self._story.append((move, self.position, note))
        if after is None:
            raise ScheduleError(what=f"{self}: {move.name} is illegal", why=f"its story: {self.story}")
        self.state = after

    @property
    def story(self) -> str:
        return " · ".join(f"{move.name} at step {position} {note}".rstrip() for move, position, note in self._story)

    def __str__(self) -> str:
        return f"interval {self.interval}, {self.state.name}, step {self.position}"


class Scheduler:
    """Of one graph server.

    own        its intervals; feeds_in, feeds_out: per own interval the intervals it reads in a Gather, in a ∇Gather
    graph_places, tensor_places   how many steps of each kind may run at once
    """

    def __init__(
        self,
        programs: Programs,
        *,
        feeds_in: Mapping[int, Sequence[int]],
        feeds_out: Mapping[int, Sequence[int]],
        num_intervals: int,
        mode: Mode,
        places: Mapping[Literal["graph", "tensor"], int],
    ) -> None:
        self._programs, self._mode = programs, mode
        self._intervals = {interval: Progress(interval) for interval in feeds_in}
        self._arrivals = {
            False: Arrivals(tuple(feeds_in), feeds_in, num_intervals),
            True: Arrivals(tuple(feeds_in), feeds_out, num_intervals),
        }
        self._free = {"graph": places["graph"], "tensor": places["tensor"]}
        self._queues: dict[str, list[tuple[int, int]]] = {"graph": [], "tensor": []}
        self._pass: Pass | None = None
        self._done: deque[int] = deque()
        self._finished = False

    def handle(self, event: Event, now: float = 0.0) -> list[Command]:
        """All that the event makes possible. Raises ScheduleError with the interval's story on an illegal one."""
        if self._finished:
            return []
        match event:
            case ClockAdvanced(pass_):
                self._open(pass_)
            case StageDone():
                if not self._accept(event):
                    return []
            case GhostRowsArrived(pass_, table, interval):
                self._arrived(pass_, table, interval)
            case TaskLost(pass_, position, interval):
                if self._running(pass_, position, interval):
                    self._release(position)
                    self._intervals[interval].move(Move.TASK_LOST)
                    self._enqueue(self._intervals[interval])
            case TaskFailed(error=error):
                return self._finish(Reason.FAILED, error)
            case PeerLost(peer):
                return self._finish(Reason.FAILED, ScheduleError(what=f"{peer} is lost"))
            case ClockStopped(reason):
                return self._finish(reason)
        return [*self._reports(), *self._start()]

    def accepts(self, event: StageDone) -> bool:
        """Whether this result is the first of its step: only then are its outputs taken."""
        return not self._finished and self._running(event.pass_, event.position, event.interval)

    def program(self, pass_: Pass) -> tuple[Step, ...]:
        match pass_.kind:
            case PassKind.TRAIN:
                return self._programs.train.steps
            case PassKind.EVALUATE:
                return self._programs.evaluate.steps
            case PassKind.PREDICT:
                return self._programs.predict.steps

    def stories(self) -> list[str]:
        """Where each interval is, and every event that touched it: what to read when nothing goes on."""
        return [f"{progress}: {progress.story}" for progress in self._intervals.values()]

    def validate(self) -> None:
        """For tests: what must hold between any two events."""
        running = [p for p in self._intervals.values() if p.state is State.RUNNING]
        assert all(count >= 0 for count in self._free.values())
        waiting = sorted(p.interval for p in self._intervals.values() if p.state is State.READY)
        assert waiting == sorted(interval for queue in self._queues.values() for _, interval in queue)
        assert not running or self._pass is not None

    # ---- events

    def _open(self, pass_: Pass) -> None:
        if self._pass is not None and pass_ <= self._pass:
            return  # the clock may say it twice
        self._pass = pass_
        for arrivals in self._arrivals.values():
            arrivals.forget_before(pass_)
        for progress in self._intervals.values():
            progress.move(Move.PASS_OPENED, pass_)
            progress.position, progress.attempt = 0, 0
        self._open_gates(self._intervals.values())

    def _accept(self, event: StageDone) -> bool:
        if not self.accepts(event):
            return False
        progress, step = self._intervals[event.interval], self.program(event.pass_)[event.position]
        self._release(event.position)
        progress.move(Move.STAGE_DONE, step)
        progress.position, progress.attempt = event.position + 1, 0
        if step.kind is Kind.SCATTER:
            self._arrived(event.pass_, step.writes[0], event.interval)
        if progress.position == len(self.program(event.pass_)):
            progress.move(Move.PASS_DONE)
            self._done.append(progress.interval)
        self._open_gates(self._intervals.values() if self._mode == "sync" else [progress])
        return True

    def _arrived(self, pass_: Pass, table: str, interval: int) -> None:
        backward = table.startswith("backward")
        if self._pass is not None and pass_ < self._pass:
            return
        completed = self._arrivals[backward].add(pass_, table, interval)
        if pass_ == self._pass:
            everyone = self._mode == "sync"
            self._open_gates(self._intervals.values() if everyone else [self._intervals[i] for i in completed])

    def _finish(self, reason: Reason, error: BaseException | None = None) -> list[Command]:
        self._finished = True
        return [Finish(reason, error)]

    # ---- gates and queues

    def _open_gates(self, candidates: Iterable[Progress]) -> None:
        assert self._pass is not None
        steps = self.program(self._pass)
        for progress in candidates:
            if progress.state is State.AT_GATE and self._gate_is_open(progress, steps[progress.position]):
                progress.move(Move.GATE_OPENED)
                self._enqueue(progress)

    def _gate_is_open(self, progress: Progress, step: Step) -> bool:
        assert self._pass is not None
        if self._mode == "sync" and any(p.position < progress.position for p in self._intervals.values()):
            return False
        if step.kind is not Kind.GATHER or step.reads[0] in self._programs.constants:
            return True
        arrivals, table = self._arrivals[step.backward], step.reads[0]
        if self._mode == "sync":
            return arrivals.all_arrived(self._pass, table)
        return arrivals.complete(self._pass, table, progress.interval)

    def _queue(self, position: int) -> str:
        assert self._pass is not None
        return "tensor" if self.program(self._pass)[position].kind is Kind.APPLY else "graph"

    def _enqueue(self, progress: Progress) -> None:
        heapq.heappush(self._queues[self._queue(progress.position)], (-progress.position, progress.interval))

    def _release(self, position: int) -> None:
        self._free[self._queue(position)] += 1

    def _running(self, pass_: Pass, position: int, interval: int) -> bool:
        progress = self._intervals.get(interval)
        if progress is None or pass_ != self._pass:
            return False
        return progress.state is State.RUNNING and progress.position == position

    def _start(self) -> Iterator[Command]:
        for name, queue in self._queues.items():
            while queue and self._free[name] > 0:
                _, interval = heapq.heappop(queue)
                self._free[name] -= 1
                progress = self._intervals[interval]
                progress.move(Move.STARTED)
                progress.attempt += 1
                yield self._command(progress)

    def _command(self, progress: Progress) -> Command:
        assert self._pass is not None
        match self.program(self._pass)[progress.position].kind:
            case Kind.GATHER:
                return Gather(self._pass, progress.position, progress.interval)
            case Kind.SCATTER:
                return Scatter(self._pass, progress.position, progress.interval)
            case _:
                return Apply(self._pass, progress.position, progress.interval, progress.attempt)

    def _reports(self) -> Iterator[Command]:
        while self._done:
            assert self._pass is not None
            yield ReportFinished(self._pass, self._done.popleft())

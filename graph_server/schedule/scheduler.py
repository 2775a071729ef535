"""Who may do what next? Pure: an event comes in, commands go out; no clock, no I/O, time is an argument.

An interval walks through the steps of a pass's program. When it may begin a pass is for the training clock to say, in
async for each interval apart. Before each step stands a gate:

pipe   a Gather waits for the rows *this interval* reads to bear this pass; every other step is free
sync   every step waits for all own intervals to have done the one before, a Gather for every interval everywhere
async  a Gather of epoch e waits until the rows this interval reads are of epoch e - 1 - staleness, or later
all    the last task of a train pass, if the training clock wants epochs to end in the order of intervals

Open steps wait in two queues, graph steps and tensor tasks. They are served as places are free: those of earlier epochs
first, then the furthest on (later steps before earlier ones). A step that was done twice counts once.
Source: Dorylus (OSDI'21), sections 4 and 5.
"""

import enum
import heapq
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

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
    IntervalMayBegin,
    IntervalsMayEnd,
    PeerLost,
    Reason,
    ReportFinished,
    Scatter,
    StageDone,
    TaskFailed,
    TaskLost,
)

Mode = Literal["sync", "pipe", "async"]
Feeds = Mapping[int, Sequence[int]]
"""Own interval -> the intervals whose rows it reads."""
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
    pass_: Pass | None = None
    """The newest that was opened for it."""
    exact_until: int = 0
    position: int = 0
    attempt: int = 0
    since: float = 0.0
    """When it came to where it is."""
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

    feeds      of its own intervals, in a Gather and in a ∇Gather
    places     how many steps of each kind may run at once
    staleness  in epochs; of async only
    """

    def __init__(
        self,
        programs: Programs,
        *,
        feeds: tuple[Feeds, Feeds],
        num_intervals: int,
        mode: Mode,
        places: Mapping[Literal["graph", "tensor"], int],
        staleness: int = 0,
    ) -> None:
        self._programs, self._mode, self._staleness = programs, mode, staleness
        self._intervals = {interval: Progress(interval) for interval in feeds[0]}
        self._num_intervals, self._ends_below = num_intervals, math.inf
        """Places in line below it may end their epoch."""
        reach = staleness if mode == "async" else None
        self._arrivals = {
            backward: Arrivals(tuple(feeds[0]), feeds[backward], num_intervals, staleness=reach)
            for backward in (False, True)
        }
        self._free = {"graph": places["graph"], "tensor": places["tensor"]}
        self._queues: dict[str, list[tuple[int, int, int]]] = {"graph": [], "tensor": []}
        """Heaps of (epoch, -position, interval)."""
        self._done: deque[tuple[Pass, int]] = deque()
        self._finished = False
        self._now = 0.0
        self.waited = {"epoch_gate": 0.0, "read_gate": 0.0, "order_gate": 0.0}
        """Seconds, over all intervals: for a train pass to be opened, for rows, and for others to end before."""

    def handle(self, event: Event, now: float = 0.0) -> list[Command]:
        """All that the event makes possible. Raises ScheduleError with the interval's story on an illegal one."""
        if self._finished:
            return []
        self._now = now
        match event:
            case ClockAdvanced(pass_):
                self._open(pass_, self._intervals.values(), exact_until=pass_.epoch)
            case IntervalMayBegin(pass_, interval, exact_until):
                self._open(pass_, self._of(interval), exact_until=exact_until)
            case IntervalsMayEnd(ends_below):
                # one that was told late allows less
                self._ends_below = ends_below if self._ends_below == math.inf else max(self._ends_below, ends_below)
                self._open_gates(self._intervals.values())
            case StageDone():
                if not self._accept(event):
                    return []
            case GhostRowsArrived(pass_, table, interval):
                self._arrived(pass_, table, interval)
            case TaskLost(pass_, position, interval):
                if self._running(pass_, position, interval):
                    self._release(self.program(pass_)[position])
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

    def oldest_epoch(self, interval: int) -> int:
        """The oldest epoch whose rows this own interval's Gather may read in its present pass."""
        progress = self._intervals[interval]
        assert progress.pass_ is not None
        epoch = progress.pass_.epoch
        if epoch <= progress.exact_until or progress.pass_.kind is not PassKind.TRAIN:
            return epoch
        return max(progress.exact_until, epoch - 1 - self._staleness)

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
        assert waiting == sorted(interval for queue in self._queues.values() for *_, interval in queue)
        assert all(p.pass_ is not None for p in running)

    # ---- events

    def _open(self, pass_: Pass, whom: Iterable[Progress], *, exact_until: int) -> None:
        # the clock may say it twice
        opened = [progress for progress in whom if progress.pass_ is None or pass_ > progress.pass_]
        for progress in opened:
            progress.move(Move.PASS_OPENED, pass_)
            if pass_.kind is PassKind.TRAIN and progress.pass_ is not None:
                self.waited["epoch_gate"] += self._now - progress.since
            progress.pass_, progress.exact_until, progress.since = pass_, exact_until, self._now
            progress.position, progress.attempt = 0, 0
        if opened:
            self._forget()
            self._open_gates(opened)

    def _forget(self) -> None:
        epochs = [progress.pass_.epoch if progress.pass_ else 0 for progress in self._intervals.values()]
        for arrivals in self._arrivals.values():
            arrivals.forget_before(min(epochs) - 1 - self._staleness)

    def _accept(self, event: StageDone) -> bool:
        if not self.accepts(event):
            return False
        progress, steps = self._intervals[event.interval], self.program(event.pass_)
        step = steps[event.position]
        self._release(step)
        progress.move(Move.STAGE_DONE, step)
        progress.position, progress.attempt, progress.since = event.position + 1, 0, self._now
        if step.kind is Kind.SCATTER:
            self._arrived(event.pass_, step.writes[0], event.interval)
        if progress.position == len(steps):
            progress.move(Move.PASS_DONE)
            self._done.append((event.pass_, progress.interval))
        self._open_gates(self._intervals.values() if self._mode == "sync" else [progress])
        return True

    def _arrived(self, pass_: Pass, table: str, interval: int) -> None:
        completed = self._arrivals[table.startswith("backward")].add(pass_, table, interval)
        everyone = self._mode == "sync"
        self._open_gates(self._intervals.values() if everyone else [self._intervals[i] for i in completed])

    def _finish(self, reason: Reason, error: BaseException | None = None) -> list[Command]:
        self._finished = True
        return [Finish(reason, error)]

    # ---- gates and queues

    def _of(self, interval: int) -> list[Progress]:
        """[] if it is another graph server's."""
        return [self._intervals[interval]] if interval in self._intervals else []

    def _open_gates(self, candidates: Iterable[Progress]) -> None:
        for progress in candidates:
            if progress.state is State.AT_GATE and self._gate_is_open(progress, self._step(progress)):
                progress.move(Move.GATE_OPENED)
                gate = "order_gate" if self._is_last(progress) else "read_gate"
                self.waited[gate] += self._now - progress.since
                self._enqueue(progress)

    def _gate_is_open(self, progress: Progress, step: Step) -> bool:
        assert progress.pass_ is not None
        if self._mode == "sync" and any(p.position < progress.position for p in self._intervals.values()):
            return False
        if self._is_last(progress):
            return (progress.pass_.epoch - 1) * self._num_intervals + progress.interval < self._ends_below
        if step.kind is not Kind.GATHER or step.reads[0] in self._programs.constants:
            return True
        arrivals, table = self._arrivals[step.backward], step.reads[0]
        if self._mode == "sync":
            return arrivals.all_arrived(progress.pass_, table)
        oldest = msgspec.structs.replace(progress.pass_, epoch=self.oldest_epoch(progress.interval))
        return arrivals.complete(oldest, table, progress.interval)

    def _is_last(self, progress: Progress) -> bool:
        """Whether it is about to end a train pass: the tensor task with the last gradients."""
        assert progress.pass_ is not None
        is_at_end = progress.position == len(self.program(progress.pass_)) - 1
        return is_at_end and progress.pass_.kind is PassKind.TRAIN and self._step(progress).kind is Kind.APPLY

    def _step(self, progress: Progress) -> Step:
        assert progress.pass_ is not None
        return self.program(progress.pass_)[progress.position]

    def _enqueue(self, progress: Progress) -> None:
        assert progress.pass_ is not None
        place = (progress.pass_.epoch, -progress.position, progress.interval)
        heapq.heappush(self._queues[_queue(self._step(progress))], place)

    def _release(self, step: Step) -> None:
        self._free[_queue(step)] += 1

    def _running(self, pass_: Pass, position: int, interval: int) -> bool:
        progress = self._intervals.get(interval)
        if progress is None or pass_ != progress.pass_:
            return False
        return progress.state is State.RUNNING and progress.position == position

    def _start(self) -> Iterator[Command]:
        for name, queue in self._queues.items():
            while queue and self._free[name] > 0:
                *_, interval = heapq.heappop(queue)
                self._free[name] -= 1
                progress = self._intervals[interval]
                progress.move(Move.STARTED)
                progress.attempt += 1
                yield self._command(progress)

    def _command(self, progress: Progress) -> Command:
        assert progress.pass_ is not None
        match self._step(progress).kind:
            case Kind.GATHER:
                return Gather(progress.pass_, progress.position, progress.interval)
            case Kind.SCATTER:
                return Scatter(progress.pass_, progress.position, progress.interval)
            case _:
                return Apply(progress.pass_, progress.position, progress.interval, progress.attempt)

    def _reports(self) -> Iterator[Command]:
        while self._done:
            yield ReportFinished(*self._done.popleft())


def _queue(step: Step) -> str:
    return "tensor" if step.kind is Kind.APPLY else "graph"

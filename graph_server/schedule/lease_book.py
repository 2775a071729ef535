"""Which lease does which tensor task? Pure: things happen, commands come out, `now` is an argument.

A lease asks for tasks with as many slots as it may hold at once (two: while one computes, the next one's inputs are on
the way). It *owns* the intervals whose constants it was sent, and gets their tasks first; nobody owns more than a fair
share, so the first to be there does not take everything. A task is done once, whoever is first; a lease's death sends
its tasks back. Errors count against a task, losses against the job.

    add ---> waiting --Send--> in hand --done--> gone
                ^                 |
                +--- failed, lost, late (relaunched: in hand twice, the first result wins)
"""

import enum
import heapq
from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from common.errors import ClusterError, TaskCrashed
from common.passes import Pass
from graph_server.schedule.stragglers import LateAfter, TaskTimes
from graph_server.schedule.token_bucket import TokenBucket


class TaskKey(NamedTuple):
    pass_: Pass
    position: int
    interval: int


@dataclass(frozen=True)
class LeaseSettings:
    num_intervals: int
    """Of this graph server."""
    target: int
    """Leases wanted while there is work."""
    max_tasks: int
    seconds: float
    late: LateAfter
    max_losses: int
    """In LOSS_WINDOW_SECONDS; one more ends the job."""
    adopt_after_seconds: float
    """A task whose owner is busy waits so long before another lease takes it, and its constants move again."""


LOSS_WINDOW_SECONDS = 300.0
MAX_TASK_ERRORS = 3


class Phase(enum.Enum):
    OPENING = "invoked, not heard of"
    LIVE = "has said hello"
    ENDING = "gets no more tasks"


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
class _Lease:
    number: int
    opened: float
    phase: Phase = Phase.OPENING
    slots: int = 0
    """That ask for a task now."""
    served: int = 0
    owns: set[int] = field(default_factory=set)
    in_hand: dict[TaskKey, float] = field(default_factory=dict)
    """Task -> when its age began."""


@dataclass
class _Task:
    since: float
    attempts: int = 0
    holders: set[int] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)


@dataclass
class Counts:
    tasks: int = 0
    relaunches: int = 0
    repeats: int = 0
    """Results that came second and were dropped."""
    lost_leases: int = 0
    throttled: int = 0
    leases: int = 0


class LeaseBook:
    def __init__(self, settings: LeaseSettings, bucket: TokenBucket) -> None:
        self._settings, self._bucket = settings, bucket
        self._leases: dict[int, _Lease] = {}
        self._tasks: dict[TaskKey, _Task] = {}
        self._waiting: dict[int, TaskKey] = {}
        self._free: list[tuple[int, int]] = []
        self._owner: dict[int, int] = {}
        self._times = TaskTimes(settings.late)
        self._losses: deque[float] = deque()
        self._numbers = 0
        self._closing = False
        self.counts = Counts()

    # ---- what happens

    def add(self, key: TaskKey, now: float) -> list[LeaseCommand]:
        self._tasks[key] = _Task(now)
        self._wait(key)
        return [*self._give(key, now), *self._open(now)]

    def hello(self, lease: int, held: Collection[int], now: float) -> list[LeaseCommand]:
        """`held`: intervals whose constants its container still has; it owns those that nobody else does."""
        book = self._leases.get(lease)
        if book is None or book.phase is not Phase.OPENING:
            return []
        book.phase, book.opened = Phase.LIVE, now
        self._bucket.succeeded()
        for interval in sorted(held):
            if interval not in self._owner and len(book.owns) < self._fair_share():
                self._own(book, interval)
        return []

    def ask(self, lease: int, now: float) -> list[LeaseCommand]:
        """One more slot of this lease is free."""
        book = self._leases.get(lease)
        if book is None:
            return []
        book.slots += 1
        return [*self._serve(book, now), *self._open(now)]

    def done(self, lease: int, key: TaskKey, now: float) -> bool:
        """Whether this is the task's first result."""
        self._put_down(lease, key, now, finished=True)
        if self._tasks.pop(key, None) is None:
            self.counts.repeats += 1
            return False
        if self._waiting.get(key.interval) == key:
            del self._waiting[key.interval]
        self.counts.tasks += 1
        return True

    def failed(self, lease: int, key: TaskKey, error: str, now: float) -> list[LeaseCommand]:
        """The task's own error, with the remote traceback: the same twice, or three of one task, end the job."""
        self._put_down(lease, key, now, finished=False)
        task = self._tasks.get(key)
        if task is None:
            return []
        task.errors.append(error)
        if task.errors.count(error) > 1 or len(task.errors) >= MAX_TASK_ERRORS:
            what = f"step {key.position} of interval {key.interval} in {key.pass_} failed {len(task.errors)} times"
            return [GiveUp(TaskCrashed(what, why=error))]
        return self._again(key, now)

    def closed(self, lease: int, now: float, *, lost: bool, throttled: bool = False) -> list[LeaseCommand]:
        """The invocation ended: by itself, or killed, timed out, unreachable (`lost`), or refused (`throttled`)."""
        book = self._leases.pop(lease, None)
        if book is None:
            return []
        for interval in book.owns:
            del self._owner[interval]
            self._offer(interval)
        commands: list[LeaseCommand] = []
        for key in book.in_hand:
            self._tasks[key].holders.discard(lease) if key in self._tasks else None
            commands += self._again(key, now)
        if throttled:
            self.counts.throttled += 1
            self._bucket.throttled(now)
        if lost:
            commands += self._count_loss(now)
        return [*commands, *self._open(now)]

    def tick(self, now: float) -> list[LeaseCommand]:
        """Time has passed: relaunch what is late, end leases that are old, let others adopt what waits too long."""
        commands: list[LeaseCommand] = []
        for book in list(self._leases.values()):
            if book.phase is Phase.LIVE and now - book.opened >= self._settings.seconds:
                commands += self._end(book, "its time is over")
            commands += self._relaunch(book, now)
        for key in list(self._waiting.values()):
            commands += self._adopt(key, now)
        return [*commands, *self._open(now)]

    def close(self) -> list[LeaseCommand]:
        """The job is over: end all."""
        self._closing = True
        return [c for book in self._leases.values() for c in self._end(book, "the job is over")]

    # ---- who gets what

    def _wait(self, key: TaskKey) -> None:
        self._waiting[key.interval] = key
        self._offer(key.interval)

    def _offer(self, interval: int) -> None:
        key = self._waiting.get(interval)
        if key is not None and interval not in self._owner:
            heapq.heappush(self._free, (-key.position, interval))

    def _again(self, key: TaskKey, now: float) -> list[LeaseCommand]:
        """Back into the queue, unless another lease has it in hand."""
        task = self._tasks.get(key)
        if task is None or task.holders or self._waiting.get(key.interval) == key:
            return []
        task.since = now
        self._wait(key)
        return self._give(key, now)

    def _give(self, key: TaskKey, now: float) -> list[LeaseCommand]:
        """To the owner's free slot; without an owner to the free lease that has least."""
        owner = self._owner.get(key.interval)
        if owner is not None:
            return self._serve(self._leases[owner], now)
        free = [book for book in self._leases.values() if book.slots and book.phase is Phase.LIVE]
        for book in sorted(free, key=lambda b: (len(b.in_hand), len(b.owns), b.number)):
            if sent := self._serve(book, now):
                return sent
        return []

    def _serve(self, book: _Lease, now: float) -> list[LeaseCommand]:
        commands: list[LeaseCommand] = []
        while book.phase is Phase.LIVE and book.slots and (key := self._best(book)) is not None:
            commands.append(self._send(book, key, now))
            if book.served + len(book.in_hand) >= self._settings.max_tasks:
                commands += self._end(book, "it has served its tasks")
        if book.phase is Phase.ENDING and book.slots:
            book.slots = 0
            commands.append(End(book.number, "no more tasks"))
        return commands

    def _best(self, book: _Lease) -> TaskKey | None:
        """Its own intervals' tasks first, later steps before earlier ones; then one that nobody owns."""
        own = [self._waiting[i] for i in book.owns if i in self._waiting]
        if own:
            return min(own, key=lambda key: (-key.position, key.interval))
        if len(book.owns) >= self._fair_share():
            return None
        while self._free:
            position, interval = self._free[0]
            key = self._waiting.get(interval)
            if key is not None and interval not in self._owner and -position == key.position:
                return key
            heapq.heappop(self._free)
        return None

    def _fair_share(self) -> int:
        around = sum(book.phase is not Phase.ENDING for book in self._leases.values())
        return -(-self._settings.num_intervals // max(1, min(around, self._settings.target)))

    def _send(self, book: _Lease, key: TaskKey, now: float) -> Send:
        del self._waiting[key.interval]
        if self._owner.get(key.interval) != book.number:
            self._own(book, key.interval)
        task = self._tasks[key]
        task.attempts += 1
        task.holders.add(book.number)
        book.slots -= 1
        book.in_hand[key] = now
        return Send(book.number, key, task.attempts)

    def _own(self, book: _Lease, interval: int) -> None:
        before = self._owner.get(interval)
        if before is not None:
            self._leases[before].owns.discard(interval)
        self._owner[interval] = book.number
        book.owns.add(interval)

    def _adopt(self, key: TaskKey, now: float) -> list[LeaseCommand]:
        """A task has waited too long for its owner: a lease that would idle takes it, and its interval."""
        idle = [b for b in self._leases.values() if b.phase is Phase.LIVE and b.slots and not b.in_hand]
        waited = now - self._tasks[key].since >= self._settings.adopt_after_seconds
        if not idle or not waited or self._waiting.get(key.interval) != key:
            return []
        return [self._send(min(idle, key=lambda b: (len(b.owns), b.number)), key, now)]

    # ---- the life of leases

    def _open(self, now: float) -> list[LeaseCommand]:
        commands: list[LeaseCommand] = []
        around = sum(book.phase is not Phase.ENDING for book in self._leases.values())
        wanted = 0 if self._closing else min(self._settings.target, len(self._tasks))
        while around < wanted and self._bucket.take(now):
            self._leases[self._numbers] = _Lease(self._numbers, now)
            commands.append(Open(self._numbers))
            self._numbers += 1
            self.counts.leases += 1
            around += 1
        return commands

    def _end(self, book: _Lease, reason: str) -> list[LeaseCommand]:
        if book.phase is Phase.ENDING:
            return []
        book.phase = Phase.ENDING
        for interval in sorted(book.owns):
            del self._owner[interval]
            self._offer(interval)
        book.owns.clear()
        if not book.slots:
            return []
        book.slots = 0
        return [End(book.number, reason)]

    def _put_down(self, lease: int, key: TaskKey, now: float, *, finished: bool) -> None:
        book = self._leases.get(lease)
        began = book.in_hand.pop(key, None) if book is not None else None
        if book is None or began is None:
            return
        if key in self._tasks:
            self._tasks[key].holders.discard(lease)
        book.served += 1
        if finished:
            self._times.took(key.position, now - began)
        for other in book.in_hand:  # what lay behind it is now the oldest
            book.in_hand[other] = now

    def _relaunch(self, book: _Lease, now: float) -> Iterator[LeaseCommand]:
        for key, began in list(book.in_hand.items()):
            late = now - began > self._times.limit(key.position)
            if not late or key not in self._tasks or key.interval in self._waiting:
                continue
            book.in_hand[key] = now  # not again at the next tick
            if self._owner.get(key.interval) == book.number:
                del self._owner[key.interval]
                book.owns.discard(key.interval)
            self.counts.relaunches += 1
            self._tasks[key].since = now
            self._wait(key)
            yield from self._give(key, now)

    def _count_loss(self, now: float) -> list[LeaseCommand]:
        self.counts.lost_leases += 1
        self._losses.append(now)
        while self._losses[0] < now - LOSS_WINDOW_SECONDS:
            self._losses.popleft()
        if len(self._losses) <= self._settings.max_losses:
            return []
        return [
            GiveUp(
                ClusterError(
                    f"{len(self._losses)} leases were lost within {LOSS_WINDOW_SECONDS:.0f} s",
                    why="functions are killed, time out or cannot reach the graph server, so nothing gets done",
                    fix="look at the functions' logs; raise backend.memory_mb, or use backend local_cpu",
                )
            )
        ]

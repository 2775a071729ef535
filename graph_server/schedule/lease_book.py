"""Which lease does which tensor task? Pure: things happen, commands come out, `now` is an argument.

A lease asks for tasks with as many slots as it may hold at once (two: while one computes, the next one's inputs are on
the way). It *owns* the intervals whose constants it was sent, and gets their tasks; nobody owns more than a fair share,
so the first to be there does not take everything. Who would idle adopts what waits too long for a busy owner, and what
is above the fair share goes to who is below it as soon as there is one. A task is done once, whoever is first; a
lease's death sends its tasks back. Errors count against a task, losses against the job.

    add ---> waiting --Send--> in hand --done--> gone
                ^                 |
                +--- failed, lost, late (relaunched: in hand twice, the first result wins)

A lease with a late task, or one that neither says hello nor goes, is *suspect*: it owns nothing, gets nothing, and
another is opened in its place, until it answers. Others are as many as wanted, those that are about to end included.
"""

import heapq
from collections.abc import Collection

from common.errors import TaskCrashed
from graph_server.schedule.idle_limit import IdleLimit
from graph_server.schedule.lease_events import (
    Counts,
    End,
    GiveUp,
    LeaseCommand,
    LeaseLoad,
    LeaseSettings,
    Open,
    Send,
    TaskKey,
)
from graph_server.schedule.lease_records import HeldTask, LeaseRecord, Phase, TaskRecord, share_of_time
from graph_server.schedule.loss_limit import LossLimit
from graph_server.schedule.stragglers import TaskTimes
from graph_server.schedule.token_bucket import TokenBucket

MAX_TASK_ERRORS = 3
MOST_LEASES = 2
"""Times what may ever be wanted, suspects included."""


class LeaseBook:
    def __init__(self, settings: LeaseSettings, bucket: TokenBucket) -> None:
        self._settings, self._bucket = settings, bucket
        self._leases: dict[int, LeaseRecord] = {}
        self._tasks: dict[TaskKey, TaskRecord] = {}
        self._waiting: dict[int, TaskKey] = {}
        self._unowned: list[tuple[int, int]] = []
        """A heap of (-position, interval); what is no longer so is passed over when it comes up."""
        self._owner: dict[int, int] = {}
        self._times = TaskTimes(settings.late)
        self._losses = LossLimit(settings.max_losses)
        self._idle = None if settings.idle is None else IdleLimit(settings.idle)
        self._target = settings.target
        self._numbers = 0
        self._closing = False
        self.counts = Counts()

    # ---- what happens

    def add(self, key: TaskKey, now: float, *, constant_bytes: int = 0) -> list[LeaseCommand]:
        """`constant_bytes`: of all that the interval's tasks read and that never changes."""
        if self._idle is not None:
            self._idle.needs(key.interval, constant_bytes)
        self._tasks[key] = TaskRecord(now)
        self._wait(key)
        return self._go_on(key.interval, now)

    def hello(self, lease: int, held: Collection[int], now: float) -> list[LeaseCommand]:
        """`held`: intervals whose constants its container still has; it owns those that nobody else does."""
        book = self._leases.get(lease)
        if book is None or book.phase is not Phase.OPENING:
            return []
        if self._idle is not None:
            self._idle.started(now - book.since)
        book.phase, book.since, book.idle_since, book.is_silent = Phase.LIVE, now, now, False
        self._bucket.succeeded()
        for interval in sorted(held):
            if interval not in self._owner and len(book.owns) < self._most():
                self._own(book, interval)
        return []

    def ask(self, lease: int, now: float) -> list[LeaseCommand]:
        """One more slot of this lease is free."""
        book = self._leases.get(lease)
        if book is None:
            return []
        book.slots, book.has_asked, book.is_silent = book.slots + 1, True, False
        if book.phase is Phase.ENDING:
            return self._dismiss(book, "no more tasks")
        return [*self._serve(book, now), *self._go_on(None, now)]

    def done(self, lease: int, key: TaskKey, now: float) -> bool:
        """Whether this is the task's first result. The lease asks for its next task by itself."""
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
        self._again(key, now)
        return self._go_on(key.interval, now)

    def closed(self, lease: int, now: float, *, lost: bool, throttled: bool = False) -> list[LeaseCommand]:
        """The invocation ended: by itself, or killed, timed out, unreachable (`lost`), or refused (`throttled`)."""
        book = self._leases.pop(lease, None)
        if book is None:
            return []
        self._disown(book)
        for key in book.in_hand:
            if key in self._tasks:
                self._tasks[key].holders.discard(lease)
                self._again(key, now)
        if throttled:
            self.counts.throttled += 1
            self._bucket.throttled(now)
        lost_too_many = self._count_loss(now) if lost else []
        return [*lost_too_many, *self._go_on(None, now)]

    def tick(self, now: float) -> list[LeaseCommand]:
        """Time has passed: relaunch what is late, end leases that are old or idle, let others adopt what waits long."""
        commands: list[LeaseCommand] = []
        for book in self._leases.values():
            if book.phase is Phase.LIVE and now - book.since >= self._settings.seconds * book.share_of_time:
                commands += self._end(book, "its time is over", now)
            self._relaunch(book, now)
            keeps_waiting = (book.phase is not Phase.LIVE or not book.has_asked) and not book.in_hand
            book.is_silent = keeps_waiting and now - book.since > self._settings.late.prior_seconds
        for key in list(self._waiting.values()):
            commands += self._adopt(key, now)
        return [*commands, *self._end_idle(now), *self._go_on(None, now)]

    def retarget(self, target: int, now: float) -> list[LeaseCommand]:
        """So many leases from now on. Those above it end: first who has nothing in hand, others when they ask next."""
        self._target = min(max(1, target), self._settings.num_intervals)
        staying = [book for book in self._leases.values() if book.stays]
        staying.sort(key=lambda book: (bool(book.in_hand), len(book.owns), -book.number))
        above = staying[: max(0, len(staying) - self._target)]
        ended = [command for book in above for command in self._end(book, "fewer leases are wanted", now)]
        return [*ended, *self._go_on(None, now)]

    def withdraw(self) -> TaskKey | None:
        """The task that somebody else had best do: none that a lease has in hand and in time, no owned one before
        those that nobody owns. It is no longer here; a result of it that still comes is a repeat."""
        key = min(self._waiting.values(), key=lambda key: (key.interval in self._owner, -key.position), default=None)
        if key is not None:
            del self._waiting[key.interval], self._tasks[key]
            self.counts.withdrawn += 1
        return key

    def load(self) -> LeaseLoad:
        books = self._leases.values()
        in_hand, empty = sum(len(book.in_hand) for book in books), sum(book.slots for book in books)
        return LeaseLoad(
            waiting=len(self._waiting),
            opening=sum(book.is_coming for book in books),
            live=sum(book.phase is not Phase.OPENING and book.has_asked for book in books),
            in_hand=in_hand,
            slots=in_hand + empty,
        )

    @property
    def target(self) -> int:
        return self._target

    def close(self, now: float) -> list[LeaseCommand]:
        """The job is over: end all."""
        self._closing = True
        return [c for book in self._leases.values() for c in self._end(book, "the job is over", now)]

    def owners(self) -> dict[int, int]:
        """Interval -> the lease that owns it."""
        return dict(self._owner)

    def validate(self) -> None:
        """For tests: what must hold between any two events."""
        held = {(key, book.number) for book in self._leases.values() for key in book.in_hand if key in self._tasks}
        assert held == {(key, lease) for key, task in self._tasks.items() for lease in task.holders}
        for key, task in self._tasks.items():
            assert task.holders or self._waiting.get(key.interval) == key, f"{key} is lost"
        owned = [(interval, book.number) for book in self._leases.values() for interval in book.owns]
        assert sorted(owned) == sorted(self._owner.items())
        assert all(book.slots >= 0 for book in self._leases.values())
        assert not [book for book in self._leases.values() if book.owns and book.phase is not Phase.LIVE]
        on_offer = {interval for _, interval in self._unowned}
        assert all(interval in self._owner or interval in on_offer for interval in self._waiting)

    # ---- what waits

    def _wait(self, key: TaskKey) -> None:
        self._waiting[key.interval] = key
        self._offer(key.interval)

    def _offer(self, interval: int) -> None:
        key = self._waiting.get(interval)
        if key is not None and interval not in self._owner:
            heapq.heappush(self._unowned, (-key.position, interval))

    def _next_unowned(self) -> TaskKey | None:
        while self._unowned:
            position, interval = self._unowned[0]
            key = self._waiting.get(interval)
            if key is not None and interval not in self._owner and -position == key.position:
                return key
            heapq.heappop(self._unowned)
        return None

    def _again(self, key: TaskKey, now: float) -> None:
        """Back into the queue, unless another lease has it in hand and is in time."""
        task = self._tasks[key]
        in_time = any(not self._leases[holder].in_hand[key].is_late for holder in task.holders)
        if not in_time and self._waiting.get(key.interval) != key:
            task.since = now
            self._wait(key)

    # ---- who gets what

    def _go_on(self, interval: int | None, now: float) -> list[LeaseCommand]:
        """All that is possible now: a task of this interval to its owner, what nobody owns to whoever is free."""
        commands: list[LeaseCommand] = []
        owner = None if interval is None else self._owner.get(interval)
        if owner is not None:
            commands += self._serve(self._leases[owner], now)
        while (key := self._next_unowned()) is not None and (book := self._freest()) is not None:
            commands += self._send(book, key, now)
        return [*commands, *self._rebalance(now), *self._open(now)]

    def _serve(self, book: LeaseRecord, now: float) -> list[LeaseCommand]:
        """Its own intervals' tasks, later steps before earlier ones."""
        commands: list[LeaseCommand] = []
        while book.is_free and (own := [self._waiting[i] for i in book.owns if i in self._waiting]):
            commands += self._send(book, min(own, key=lambda key: (-key.position, key.interval)), now)
        return commands

    def _freest(self) -> LeaseRecord | None:
        """Who may own one more interval, and has least in hand."""
        most = self._most()
        free = [book for book in self._leases.values() if book.is_free and len(book.owns) < most]
        return min(free, key=lambda book: (len(book.in_hand), len(book.owns), book.number), default=None)

    def _rebalance(self, now: float) -> list[LeaseCommand]:
        """Who came late finds everything owned: what waits for an owner with more than its share is its own now."""
        commands: list[LeaseCommand] = []
        share, _ = self._fair_share()
        for owner in [book for book in self._leases.values() if len(book.owns) > share]:
            for key in [self._waiting[interval] for interval in sorted(owner.owns) if interval in self._waiting]:
                book = self._freest()
                if book is not None and len(book.owns) < share < len(owner.owns):
                    commands += self._send(book, key, now)
        return commands

    def _adopt(self, key: TaskKey, now: float) -> list[LeaseCommand]:
        """A task has waited too long for its owner: a lease that would idle takes it, and its interval. Not while
        others are about to come, for then they are who would idle, and constants would move twice."""
        waited = now - self._tasks[key].since >= self._settings.adopt_after_seconds
        coming = any(book.is_coming for book in self._leases.values())
        idle = [book for book in self._leases.values() if book.is_free and not book.in_hand]
        if not idle or not waited or coming or self._waiting.get(key.interval) != key:
            return []
        return self._send(min(idle, key=lambda book: (len(book.owns), book.number)), key, now)

    def _send(self, book: LeaseRecord, key: TaskKey, now: float) -> list[LeaseCommand]:
        del self._waiting[key.interval]
        self._own(book, key.interval)
        task = self._tasks[key]
        task.attempts += 1
        task.holders.add(book.number)
        book.slots -= 1
        book.in_hand[key] = HeldTask()
        self._begin_oldest(book, now)
        sent = Send(book.number, key, task.attempts)
        if book.served + len(book.in_hand) < self._settings.max_tasks:
            return [sent]
        return [sent, *self._end(book, "it has served its tasks", now)]

    def _fair_share(self) -> tuple[int, int]:
        """Everybody's due, and how many may own one more."""
        return divmod(self._settings.num_intervals, max(1, min(self._around(), self._target)))

    def _most(self) -> int:
        """Intervals that a lease may own at present."""
        share, remaining = self._fair_share()
        return share + (sum(len(book.owns) > share for book in self._leases.values()) < remaining)

    def _own(self, book: LeaseRecord, interval: int) -> None:
        before = self._owner.get(interval)
        if before is not None and before != book.number:
            self._leases[before].owns.discard(interval)
            self.counts.handovers += 1
        self._owner[interval] = book.number
        book.owns.add(interval)

    def _disown(self, book: LeaseRecord) -> None:
        for interval in sorted(book.owns):
            del self._owner[interval]
            self._offer(interval)
        book.owns.clear()

    # ---- the life of leases

    def _around(self) -> int:
        return sum(not book.is_suspect for book in self._leases.values())

    def _open(self, now: float) -> list[LeaseCommand]:
        commands: list[LeaseCommand] = []
        wanted = 0 if self._closing else min(self._target, self._demand(now)) - self._around()
        most = max(self._target, self._settings.target, self._settings.most)
        room = MOST_LEASES * most - len(self._leases)
        while len(commands) < min(wanted, room) and self._bucket.take(now):
            self._leases[self._numbers] = LeaseRecord(
                self._numbers, now, now, share_of_time(self._numbers, self._settings.phase)
            )
            commands.append(Open(self._numbers))
            self._numbers += 1
            self.counts.leases += 1
        return commands

    def _demand(self, now: float) -> int:
        """Tasks that ask for leases."""
        patience = self._settings.open_after_seconds
        if not patience:
            return len(self._tasks)
        patient = sum(now - self._tasks[key].since < patience for key in self._waiting.values())
        return len(self._tasks) - patient

    def _end_idle(self, now: float) -> list[LeaseCommand]:
        """Not while others are about to come: till then there is less to do than there will be."""
        idle = [book for book in self._leases.values() if book.phase is Phase.LIVE and not book.in_hand]
        if any(book.is_coming for book in self._leases.values()):
            for book in idle:
                book.idle_since = now
        if self._idle is None:
            return []
        tired = [book for book in idle if now - book.idle_since > self._idle.seconds(book.owns)]
        self.counts.idle += len(tired)
        return [command for book in tired for command in self._end(book, "it has nothing to do", now)]

    def _end(self, book: LeaseRecord, reason: str, now: float) -> list[LeaseCommand]:
        if book.phase is Phase.ENDING:
            return []
        book.phase, book.since = Phase.ENDING, now
        self._disown(book)
        return self._dismiss(book, reason)

    def _dismiss(self, book: LeaseRecord, reason: str) -> list[LeaseCommand]:
        asked, book.slots = book.slots, 0
        return [End(book.number, reason)] if asked else []

    def _put_down(self, lease: int, key: TaskKey, now: float, *, finished: bool) -> None:
        book = self._leases.get(lease)
        hand = book.in_hand.pop(key, None) if book is not None else None
        if book is None or hand is None:
            return
        if key in self._tasks:
            self._tasks[key].holders.discard(lease)
        book.served += 1
        book.idle_since = now
        if finished and hand.age_since is not None:
            self._times.took((key.pass_.kind, key.position), now - hand.age_since)
        self._begin_oldest(book, now)

    def _begin_oldest(self, book: LeaseRecord, now: float) -> None:
        """Behind a task that is late nothing is waited for any longer: the next one's age begins, too."""
        oldest = next((hand for hand in book.in_hand.values() if not hand.is_late), None)
        if oldest is not None and oldest.age_since is None:
            oldest.age_since = now

    def _relaunch(self, book: LeaseRecord, now: float) -> None:
        """What is late waits again, for another lease."""
        for key, hand in book.in_hand.items():
            limit = self._times.limit((key.pass_.kind, key.position))
            if hand.is_late or hand.age_since is None or now - hand.age_since <= limit:
                continue
            hand.is_late = True
            self._disown(book)
            if key in self._tasks and self._waiting.get(key.interval) != key:
                self.counts.relaunches += 1
                self._again(key, now)
        self._begin_oldest(book, now)

    def _count_loss(self, now: float) -> list[LeaseCommand]:
        self.counts.lost_leases += 1
        error = self._losses.lost(now)
        return [] if error is None else [GiveUp(error)]

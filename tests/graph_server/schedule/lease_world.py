"""Functions and their misfortunes around a lease book, without clock or network: a die says what happens next.

    invoked -> hello, late or never -> asks, takes tasks in order -> results · errors · nothing, for it hangs -> gone

Now and then another number of leases is wanted, or a task that waits is taken back and done by somebody else. Every
interval walks through a few steps, each a task; the world ends when all are done. Whatever comes out of the book is
checked here against what a function can bear, and the book itself after every event.
"""

import random
from dataclasses import dataclass, field

from common.passes import evaluate, train
from graph_server.schedule.idle_limit import IdleAfter
from graph_server.schedule.lease_book import LeaseBook
from graph_server.schedule.lease_events import End, LeaseCommand, LeaseSettings, Open, Send, TaskKey
from graph_server.schedule.stragglers import LateAfter
from graph_server.schedule.token_bucket import TokenBucket

STEPS = 3
FLOOR = 0.5
MANY = 5000
"""Happenings of one world; the longest takes a tenth."""


@dataclass
class Function:
    """One invocation. `hangs`: it takes tasks, is never heard of again, and never goes."""

    hangs: bool
    hello_at: float | None = None
    slots: int = 0
    in_hand: list[tuple[TaskKey, float]] = field(default_factory=list)
    """With when it was sent, oldest first."""
    sent: int = 0
    told_to_end: bool = False


class World:
    """`luck`: how much of what happens is bad, 0 to 1."""

    def __init__(self, seed: int, book: type[LeaseBook] = LeaseBook) -> None:
        self.die = die = random.Random(seed)
        self.luck = die.choice((0.0, 0.1, 0.4))
        self.settings = LeaseSettings(
            num_intervals=die.randint(1, 9),
            target=die.randint(1, 5),
            max_tasks=die.choice((1, 3, 50)),
            seconds=die.choice((5.0, 100.0)),
            late=LateAfter(5.0, FLOOR, 3.0),
            max_losses=10**6,
            adopt_after_seconds=1.0,
            idle=die.choice((None, IdleAfter(0.0, 0.5))),
            open_after_seconds=die.choice((0.0, 0.2)),
        )
        self.num_slots = die.randint(1, 3)
        self.book = book(self.settings, TokenBucket(5, 5))
        self.now = 1000.0
        self.functions: dict[int, Function] = {}
        self.done: set[TaskKey] = set()
        self.later: list[tuple[float, TaskKey]] = []
        """What comes when an interval's graph stages are done."""
        self.away = die.choice((0.0, 60.0))
        self.failures: dict[TaskKey, int] = {}

    @property
    def wanted(self) -> int:
        return self.settings.num_intervals * STEPS

    def run(self) -> None:
        """Raises AssertionError if a task is lost, or given to whom it must not be, or never done."""
        for interval in range(self.settings.num_intervals):
            self.obey(self.book.add(self.task(interval, 0), self.now))
        for _ in range(MANY):
            if len(self.done) == self.wanted:
                break
            self.now += self.die.random() * self.die.choice((0.01, 0.3, 0.3, 4.0))
            self.add_what_is_ready()
            self.happen()
            self.book.validate()
        assert len(self.done) == self.wanted, "a standstill"
        assert self.book.counts.tasks + self.book.counts.withdrawn == self.wanted
        self.end()

    def end(self) -> None:
        """The job is over: every function is told, and none is opened."""
        self.obey(self.book.close(self.now))
        for lease, function in list(self.functions.items()):
            if function.hello_at is not None:
                assert function.told_to_end or not function.slots
            self.obey(self.book.closed(lease, self.now, lost=False))
        assert not self.functions or not self.book.owners()

    def task(self, interval: int, step: int) -> TaskKey:
        return TaskKey(evaluate(1) if step == STEPS - 1 else train(1), step, interval)

    # ---- what happens

    def add_what_is_ready(self) -> None:
        ready = [(when, key) for when, key in self.later if when <= self.now]
        self.later = [(when, key) for when, key in self.later if when > self.now]
        for _, key in ready:
            self.obey(self.book.add(key, self.now, constant_bytes=75_000_000))

    def happen(self) -> None:
        bad = self.die.random() < self.luck
        candidates = [self.tick, self.hello, self.finish, self.finish, self.finish]
        if self.die.random() < 0.05:
            candidates = [self.retarget, self.withdraw]
        elif bad:
            candidates = [self.lose, self.throttle, self.fail, self.lose_unheard]
        self.die.choice(candidates)()

    def tick(self) -> None:
        self.obey(self.book.tick(self.now))
        over = [number for number, f in self.functions.items() if f.told_to_end and not f.in_hand]
        for lease in over:
            self.go(lease, lost=False)

    def hello(self) -> None:
        lease = self.any_of(lambda f: f.hello_at is None)
        if lease is None:
            return
        held = self.die.sample(range(self.settings.num_intervals), self.die.randint(0, self.settings.num_intervals))
        function = self.functions[lease]
        function.hello_at = self.now
        self.obey(self.book.hello(lease, held, self.now))
        for _ in range(self.num_slots):
            self.ask(lease)

    def finish(self) -> None:
        """A result; now and then it comes once more."""
        lease = self.any_of(lambda f: bool(f.in_hand) and not f.hangs)
        if lease is None:
            return
        key = self.take_one(lease)
        first = self.book.done(lease, key, self.now)
        assert first == (key not in self.done), "a result counts once"
        if first:
            self.go_on(key)
        self.ask(lease)

    def go_on(self, key: TaskKey) -> None:
        """This task is done: the interval's next one begins."""
        self.done.add(key)
        if key.position + 1 < STEPS:
            ready = self.now + self.die.random() * self.away
            self.later.append((ready, self.task(key.interval, key.position + 1)))

    def retarget(self) -> None:
        """Of leases, fewer or more."""
        self.obey(self.book.retarget(self.die.randint(1, self.settings.target), self.now))

    def withdraw(self) -> None:
        """Somebody else does it, at once."""
        key = self.book.withdraw()
        if key is not None:
            assert key not in self.done
            self.go_on(key)

    def fail(self) -> None:
        """Twice a task at most, with different words."""
        lease = self.any_of(lambda f: any(self.failures.get(key, 0) < 2 for key, _ in f.in_hand) and not f.hangs)
        if lease is None:
            return
        key = self.take_one(lease)
        self.failures[key] = self.failures.get(key, 0) + 1
        if self.failures[key] > 2:
            self.go(lease, lost=True)
        else:
            self.obey(self.book.failed(lease, key, f"error {self.failures[key]}", self.now))
            self.ask(lease)

    def lose(self) -> None:
        if (lease := self.any_of(lambda f: f.hello_at is not None and not f.hangs)) is not None:
            self.go(lease, lost=True)

    def lose_unheard(self) -> None:
        if (lease := self.any_of(lambda f: f.hello_at is None)) is not None:
            self.go(lease, lost=True)

    def throttle(self) -> None:
        if (lease := self.any_of(lambda f: f.hello_at is None)) is not None:
            del self.functions[lease]
            self.obey(self.book.closed(lease, self.now, lost=False, throttled=True))

    # ---- what it comes from

    def any_of(self, wanted) -> int | None:
        found = [number for number, function in self.functions.items() if wanted(function)]
        return self.die.choice(found) if found else None

    def take_one(self, lease: int) -> TaskKey:
        in_hand = self.functions[lease].in_hand
        return in_hand.pop(self.die.randrange(len(in_hand)))[0]

    def go(self, lease: int, *, lost: bool) -> None:
        del self.functions[lease]
        self.obey(self.book.closed(lease, self.now, lost=lost))

    def ask(self, lease: int) -> None:
        if lease in self.functions and not self.functions[lease].told_to_end:
            self.functions[lease].slots += 1
            self.obey(self.book.ask(lease, self.now))

    def obey(self, commands: list[LeaseCommand]) -> None:
        for command in commands:
            match command:
                case Open(lease):
                    # Half of all places may be lost to those that hang.
                    places = self.settings.target - sum(function.hangs for function in self.functions.values())
                    self.functions[lease] = Function(hangs=places > 0 and self.die.random() < self.luck / 4)
                    assert len(self.functions) <= 2 * self.settings.target
                case Send(lease, key, _):
                    self.send(lease, key)
                case End(lease):
                    function = self.functions[lease]
                    assert function.slots > 0, "nobody waits there"
                    function.slots, function.told_to_end = 0, True
                case _:
                    raise AssertionError(f"{command} for no reason")

    def send(self, lease: int, key: TaskKey) -> None:
        function = self.functions[lease]
        assert function.hello_at is not None
        assert function.slots > 0
        assert not function.told_to_end
        assert key not in self.done
        function.sent += 1
        assert function.sent <= self.settings.max_tasks
        for other in self.functions.values():
            for held, since in other.in_hand:
                assert held != key or (other is not function and self.now - since > FLOOR), "two have it for no reason"
        function.slots -= 1
        function.in_hand.append((key, self.now))

"""The tuner's loop around a real lease book: windows in, another target out, every decision written with its reason."""

from dataclasses import dataclass, field

from common.passes import evaluate, train
from common.trace import LeaseDecision
from graph_server.cores import Cores
from graph_server.lease_tuning import LeaseTuning, Written
from graph_server.schedule.lease_book import LeaseBook
from graph_server.schedule.lease_events import LeaseSettings, TaskKey
from graph_server.schedule.stragglers import LateAfter
from graph_server.schedule.token_bucket import TokenBucket
from tests.graph_server.schedule.books import live, opened, sent

BEGAN = 100.0
INTERVALS = 8


def settings(least: int = 1, most: int = INTERVALS) -> LeaseSettings:
    return LeaseSettings(
        num_intervals=INTERVALS,
        target=most,
        max_tasks=10**6,
        seconds=1e6,
        late=LateAfter(1e6, 1e6, 1e6),
        max_losses=0,
        adopt_after_seconds=1e6,
        least=least,
        most=most,
    )


@dataclass
class Tuned:
    """Leases that do each task at once: nearly always idle."""

    settings: LeaseSettings
    now: float = BEGAN
    epoch: int = 0
    decisions: list[LeaseDecision] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.book = LeaseBook(self.settings, TokenBucket(1000, 1000))
        written = Written(self.decisions.append, server=3, began=BEGAN)
        self.tuning = LeaseTuning(self.book, self.settings, Cores(2), written)

    def epochs(self, number: int) -> None:
        for _ in range(number):
            self.one_epoch()
            self.now += 2.0

    def one_epoch(self) -> None:
        self.epoch += 1
        self.tuning.saw(train(self.epoch), self.now)
        for interval in range(INTERVALS):
            key = TaskKey(train(self.epoch), 0, interval)
            commands = self.book.add(key, self.now)
            for lease in opened(commands):
                commands += live(self.book, lease)
            for lease, _ in sent(commands):
                assert self.book.done(lease, key, self.now)
                self.book.ask(lease, self.now)
        self.tuning.tick()
        self.tuning.saw(evaluate(self.epoch), self.now)


def test_the_start_is_a_decision():
    (start,) = Tuned(settings(most=5)).decisions
    assert (start.at, start.server, start.before, start.target) == (0.0, 3, 0, 5)
    assert start.reason == "start: 8 intervals, 1 to 5 leases"


def test_idle_leases_are_fewer_after_a_while_and_the_book_follows():
    tuned = Tuned(settings())
    tuned.epochs(40)
    targets = [decision.target for decision in tuned.decisions]
    assert targets[0] == INTERVALS
    assert targets[-1] == tuned.book.target == 1
    assert [decision.before for decision in tuned.decisions[1:]] == targets[:-1]
    assert all(decision.reason for decision in tuned.decisions)


def test_what_was_seen_stands_in_the_record():
    tuned = Tuned(settings())
    tuned.epochs(12)
    decision = tuned.decisions[1]
    assert decision.tasks_per_second == INTERVALS / 2.0
    assert (decision.busy, decision.waiting) == (0.0, 0.0)
    assert decision.at > 2.0


def test_tasks_done_elsewhere_count_as_progress():
    tuned = Tuned(settings())
    for _ in range(12):
        tuned.tuning.tasks_elsewhere += INTERVALS
        tuned.epochs(1)
    assert tuned.decisions[1].tasks_per_second == 2 * INTERVALS / 2.0


def test_never_fewer_than_the_least():
    tuned = Tuned(settings(least=6))
    tuned.epochs(40)
    assert {decision.target for decision in tuned.decisions} <= {6, 7, 8}
    assert tuned.book.target == 6


def test_a_graph_server_without_intervals_has_nothing_to_tune():
    empty = LeaseSettings(0, 0, 1, 1.0, LateAfter(1, 1, 1), 0, 1.0)
    tuned = LeaseTuning(LeaseBook(empty, TokenBucket(1, 1)), empty, Cores(1), Written(lambda _: None, 0, 0.0))
    tuned.tick()
    assert tuned.saw(train(1), 1.0) == []

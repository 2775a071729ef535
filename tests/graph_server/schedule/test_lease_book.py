"""No task is lost, whatever happens to functions, and each is done once; and which lease gets what, and how many."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import ClusterError, TaskCrashed
from common.passes import train
from graph_server.schedule.lease_book import LOSS_WINDOW_SECONDS, LeaseBook
from graph_server.schedule.lease_events import End, GiveUp, LeaseCommand, LeaseSettings, Open, Send, TaskKey
from graph_server.schedule.stragglers import LateAfter
from graph_server.schedule.token_bucket import TokenBucket
from tests.examples import examples
from tests.graph_server.schedule.lease_world import World

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=examples(400))
@given(seed=seeds)
def test_every_task_is_done_once_whatever_happens(seed: int):
    World(seed).run()


def test_the_worlds_have_everything_in_them():
    """Else their ending well would mean little."""
    worlds = [World(seed) for seed in range(40)]
    for world in worlds:
        world.run()
    counts = [world.book.counts for world in worlds]
    for kind in ("relaunches", "repeats", "lost_leases", "throttled"):
        assert sum(getattr(count, kind) for count in counts) > 10, kind
    assert any(world.failures for world in worlds)


# ---- deliberate defects


class ForgetsTheTasksOfTheDead(LeaseBook):
    def _again(self, key: TaskKey, now: float) -> None:
        pass


class TakesEveryResult(LeaseBook):
    def done(self, lease: int, key: TaskKey, now: float) -> bool:
        super().done(lease, key, now)
        return True


class NeverRelaunches(LeaseBook):
    def _relaunch(self, book, now: float) -> None:
        pass


class WaitsForTheHungForEver(LeaseBook):
    def _begin_oldest(self, book, now: float) -> None:
        for hand in list(book.in_hand.values())[:1]:
            hand.age_since = now if hand.age_since is None else hand.age_since


class KeepsTheIntervalsOfTheDead(LeaseBook):
    def _disown(self, book) -> None:
        book.owns.clear()


class NeverTires(LeaseBook):
    def _end(self, book, reason: str, now: float) -> list[LeaseCommand]:
        return []


@pytest.mark.parametrize(
    "book",
    [
        ForgetsTheTasksOfTheDead,
        TakesEveryResult,
        NeverRelaunches,
        WaitsForTheHungForEver,
        KeepsTheIntervalsOfTheDead,
        NeverTires,
    ],
)
def test_a_defect_is_found(book: type[LeaseBook]):
    with pytest.raises((AssertionError, KeyError)):
        run_many(book)


def run_many(book: type[LeaseBook]) -> None:
    for seed in range(60):
        World(seed, book).run()


# ---- one thing at a time


def book_of(intervals: int = 12, target: int = 5, **other: float) -> LeaseBook:
    given = {"max_tasks": 64, "seconds": 240.0, "max_losses": 3, "adopt_after_seconds": 1.0, **other}
    late = LateAfter(ratio=5.0, floor_seconds=0.5, prior_seconds=20.0)
    made = LeaseSettings(num_intervals=intervals, target=target, late=late, **given)  # type: ignore[arg-type]
    return LeaseBook(made, TokenBucket(100, 100))


def task(interval: int, position: int = 0) -> TaskKey:
    return TaskKey(train(1), position, interval)


def opened(commands: list[LeaseCommand]) -> list[int]:
    return [command.lease for command in commands if isinstance(command, Open)]


def sent(commands: list[LeaseCommand]) -> list[tuple[int, int]]:
    """(lease, interval)."""
    return [(command.lease, command.task.interval) for command in commands if isinstance(command, Send)]


def live(book: LeaseBook, lease: int, held: tuple[int, ...] = (), slots: int = 2) -> list[LeaseCommand]:
    commands = book.hello(lease, held, 0.0)
    for _ in range(slots):
        commands += book.ask(lease, 0.0)
    return commands


def finish(book: LeaseBook, lease: int, key: TaskKey, now: float) -> list[LeaseCommand]:
    assert book.done(lease, key, now)
    return book.ask(lease, now)


def test_leases_are_opened_as_tasks_come_and_no_more_than_wanted():
    book = book_of(target=3)
    assert [opened(book.add(task(interval), 0.0)) for interval in range(5)] == [[0], [1], [2], [], []]


def test_nobody_owns_more_than_a_fair_share():
    book = book_of(intervals=12, target=5)
    for interval in range(12):
        book.add(task(interval), 0.0)
    taken = [interval for lease in range(5) for _, interval in sent(live(book, lease, slots=12))]
    assert sorted(taken) == list(range(12))
    owned = list(book.owners().values())
    assert max(owned.count(lease) for lease in range(5)) == 3
    assert set(owned) == set(range(4)), "the last one found nothing left"


def test_what_a_container_still_holds_is_its_own_up_to_its_share():
    book = book_of(intervals=4, target=2)
    for interval in range(4):
        book.add(task(interval), 0.0)
    assert sent(live(book, 0, held=(1, 2, 3), slots=4)) == [(0, 1), (0, 2)]
    assert sent(live(book, 1, held=(1, 3), slots=4)) == [(1, 3), (1, 0)]
    assert book.owners() == {1: 0, 2: 0, 3: 1, 0: 1}


def test_an_owner_gets_its_intervals_next_task_later_steps_first():
    book = book_of(intervals=3, target=1)
    for interval in range(3):
        book.add(task(interval), 0.0)
    assert sent(live(book, 0, slots=3)) == [(0, 0), (0, 1), (0, 2)]
    for interval, position in ((0, 1), (1, 2), (2, 1)):
        assert book.done(0, task(interval), 0.1)
        assert book.add(task(interval, position), 0.1) == []
    assert [sent(book.ask(0, 0.2)) for _ in range(3)] == [[(0, 1)], [(0, 0)], [(0, 2)]]


def test_a_task_whose_owner_is_busy_is_adopted_after_a_while_by_who_would_idle():
    book = book_of(intervals=2, target=2)
    book.add(task(0), 0.0)
    book.add(task(1), 0.0)
    assert sent(live(book, 0, slots=1)) == [(0, 0)]
    assert sent(live(book, 1, slots=1)) == [(1, 1)]
    assert finish(book, 1, task(1), 0.1) == []
    assert book.done(0, task(0), 0.1)
    assert sent(book.add(task(0, 1), 0.1)) == [], "its owner has not asked yet"
    assert sent(book.tick(1.0)) == []
    assert sent(book.tick(1.2)) == [(1, 0)]
    assert book.owners() == {0: 1, 1: 1}


@pytest.mark.parametrize("how", ["dies", "has served its tasks"])
def test_what_a_lease_leaves_goes_to_who_waits(how: str):
    """At once, though nobody asks again."""
    book = book_of(intervals=2, target=2, max_tasks=2)
    book.add(task(0), 0.0)
    book.add(task(1), 0.0)
    assert sent(live(book, 0, held=(0, 1), slots=2)) == [(0, 0)], "its fair share"
    assert sent(live(book, 1)) == [(1, 1)]
    if how == "dies":
        assert sent(book.closed(0, 0.2, lost=True)) == [(1, 0)]
    else:
        assert book.done(0, task(0), 0.1)
        assert book.add(task(0, 1), 0.1) == [Send(0, task(0, 1), 1)]
        assert finish(book, 0, task(0, 1), 0.2) == [End(0, "no more tasks")]
        book.closed(0, 0.3, lost=False)
        assert sent(book.add(task(0, 2), 0.4)) == [(1, 0)]


def test_a_lease_that_has_served_its_tasks_gets_no_more():
    book = book_of(intervals=3, target=1, max_tasks=2)
    for interval in range(3):
        book.add(task(interval), 0.0)
    commands = live(book, 0, slots=3)
    assert sent(commands) == [(0, 0), (0, 1)]
    assert [c for c in commands if isinstance(c, End)] == [End(0, "no more tasks")]
    assert finish(book, 0, task(0), 0.1) == [End(0, "no more tasks")]
    assert finish(book, 0, task(1), 0.1) == [End(0, "no more tasks")]
    assert opened(book.closed(0, 0.2, lost=False)) == [1]


def test_a_lease_whose_time_is_over_gets_no_more():
    book = book_of(intervals=2, target=1, seconds=10.0)
    book.add(task(0), 0.0)
    assert sent(live(book, 0)) == [(0, 0)]
    assert book.tick(9.9) == []
    assert book.tick(10.0) == [End(0, "its time is over")]
    assert book.add(task(1), 10.1) == []
    assert finish(book, 0, task(0), 10.2) == [End(0, "no more tasks")]
    assert opened(book.closed(0, 10.3, lost=False)) == [1]


def test_its_time_begins_with_its_hello():
    book = book_of(target=1, seconds=10.0)
    book.add(task(0), 0.0)
    book.hello(0, (), 8.0)
    assert book.tick(17.0) == []
    book.ask(0, 17.0)
    assert book.tick(18.0) == []
    book.ask(0, 17.0)
    assert book.ask(0, 18.1) == [End(0, "no more tasks")]


# ---- late


def late_book(intervals: int = 2, target: int = 2) -> LeaseBook:
    """Lease 0 has interval 0 in hand, lease 1 waits with two slots; a task takes a second."""
    book = book_of(intervals=intervals, target=target)
    book.add(task(0), 0.0)
    book.add(task(1), 0.0)
    live(book, 0, slots=1)
    live(book, 1, slots=1)
    for lease in (0, 1):
        assert book.done(lease, task(lease), 1.0)
    book.add(task(0, 0), 1.0)
    assert sent(book.ask(0, 1.0)) == [(0, 0)]
    assert sent(book.ask(1, 1.0)) == []
    return book


def test_a_late_task_is_relaunched_elsewhere_and_the_first_result_wins():
    book = late_book()
    assert book.tick(6.0) == []
    assert book.tick(6.1) == [Send(1, task(0), 2)]
    assert book.owners()[0] == 1
    assert opened(book.add(task(1, 1), 6.1)) == [2], "in place of the suspect"
    assert book.done(1, task(0), 6.2)
    assert not book.done(0, task(0), 6.3)
    assert (book.counts.relaunches, book.counts.repeats, book.counts.tasks) == (1, 1, 3)


def test_a_late_task_is_relaunched_once_and_again_when_its_copy_is_late_too():
    book = late_book()
    assert sent(book.tick(6.1)) == [(1, 0)]
    assert sent(book.tick(6.5)) == []
    assert opened(book.tick(11.2)) == [2], "lease 1 is suspect as well; its task waits for somebody else"
    assert sent(live(book, 2)) == [(2, 0)]
    assert book.counts.relaunches == 2


def test_the_death_of_a_copy_sends_it_again_though_the_late_one_may_still_live():
    book = late_book()
    book.tick(6.1)
    assert opened(book.closed(1, 6.2, lost=True)) == [2]
    assert sent(live(book, 2)) == [(2, 0)]


def test_a_suspect_gets_nothing_until_it_answers():
    book = late_book()
    book.tick(6.1)
    book.ask(0, 6.2)
    assert sent(book.add(task(1, 1), 6.2)) == [], "lease 1 has no slot left, lease 0 is not trusted"
    assert book.done(0, task(0), 6.3)
    assert sent(book.ask(0, 6.3)) == [(0, 1)] or book.owners()[1] == 1


def test_before_anything_was_measured_the_prior_counts():
    book = book_of(intervals=2, target=2)
    book.add(task(0), 0.0)
    book.add(task(1), 0.0)
    live(book, 0, slots=1)
    live(book, 1, slots=1)
    assert book.tick(20.0) == []
    book.tick(20.1)
    assert book.counts.relaunches == 2


def test_the_age_of_a_task_begins_when_its_lease_has_nothing_older():
    """Two are sent at once, each takes a second: the second one is not late for having waited behind the first."""
    book = book_of(intervals=2, target=1)
    book.add(task(0), 0.0)
    book.add(task(1), 0.0)
    live(book, 0)
    finish(book, 0, task(0), 1.0)
    finish(book, 0, task(1), 2.0)
    book.add(task(0), 100.0)
    book.add(task(1), 100.0)
    book.tick(105.0)
    assert book.counts.relaunches == 0
    book.tick(105.1)
    assert book.counts.relaunches == 1, "the first alone"


def test_behind_a_task_that_hangs_the_next_one_is_late_in_its_turn():
    book = book_of(intervals=2, target=1)
    book.add(task(0), 0.0)
    book.add(task(1), 0.0)
    live(book, 0)
    book.tick(20.1)
    assert book.counts.relaunches == 1
    book.tick(40.3)
    assert book.counts.relaunches == 2
    assert sent(live(book, 1)) == [(1, 0), (1, 1)]


def test_an_invocation_that_never_says_hello_is_replaced():
    book = book_of(target=1)
    assert opened(book.add(task(0), 0.0)) == [0]
    assert book.tick(20.0) == []
    assert opened(book.tick(20.1)) == [1]
    assert opened(book.tick(20.2)) == [], "so is its replacement, in its turn"
    assert sent(live(book, 1)) == [(1, 0)]


def test_there_are_never_more_than_twice_as_many_leases_as_wanted():
    book = book_of(target=2)
    for interval in range(4):
        book.add(task(interval), 0.0)
    for now in range(0, 500, 25):
        book.tick(float(now))
    assert book.counts.leases == 4


# ---- errors and losses


def test_the_same_error_twice_ends_the_job_with_the_remote_traceback():
    book = book_of(target=1)
    book.add(task(0, 4), 0.0)
    live(book, 0, slots=1)
    assert GiveUp not in map(type, book.failed(0, task(0, 4), "Traceback: no", 0.1))
    assert sent(book.ask(0, 0.1)) == [(0, 0)]
    (given_up,) = book.failed(0, task(0, 4), "Traceback: no", 0.2)
    assert isinstance(given_up, GiveUp)
    assert isinstance(given_up.error, TaskCrashed)
    assert str(given_up.error) == "step 4 of interval 0 in train 1 failed 2 times\n  why: Traceback: no"


def test_three_errors_of_one_task_end_the_job():
    book = book_of(target=1)
    book.add(task(0), 0.0)
    live(book, 0, slots=1)
    for number in range(2):
        assert GiveUp not in map(type, book.failed(0, task(0), f"error {number}", 0.1))
        book.ask(0, 0.1)
    assert GiveUp in map(type, book.failed(0, task(0), "error 2", 0.1))


def test_errors_of_different_tasks_do_not_add_up():
    book = book_of(target=1)
    for interval in range(6):
        book.add(task(interval), 0.0)
    live(book, 0)
    for interval in range(6):
        assert GiveUp not in map(type, book.failed(0, task(interval), "error", 0.1))
        book.ask(0, 0.1)
        book.ask(0, 0.1)


def test_an_error_of_a_task_that_is_done_is_nobodys():
    book = late_book()
    book.tick(6.1)
    assert book.done(1, task(0), 6.2)
    assert book.failed(0, task(0), "error", 6.3) == []


def lose_some(book: LeaseBook, count: int, now: float) -> list[LeaseCommand]:
    commands: list[LeaseCommand] = []
    for _ in range(count):
        commands = book.closed(book.counts.leases - 1, now, lost=True)
    return commands


def test_too_many_losses_within_five_minutes_end_the_job():
    book = book_of(target=1)
    book.add(task(0), 0.0)
    assert GiveUp not in map(type, lose_some(book, 3, 1.0))
    given_up = lose_some(book, 1, 1.0 + LOSS_WINDOW_SECONDS)[0]
    assert isinstance(given_up, GiveUp)
    assert isinstance(given_up.error, ClusterError)
    assert given_up.error.what == "4 leases were lost within 300 s"


def test_losses_long_ago_do_not_count():
    book = book_of(target=1)
    book.add(task(0), 0.0)
    lose_some(book, 3, 1.0)
    assert GiveUp not in map(type, lose_some(book, 3, 1.1 + LOSS_WINDOW_SECONDS))
    assert book.counts.lost_leases == 6


def test_a_throttled_lease_is_no_loss():
    book = book_of(target=1, max_losses=0)
    book.add(task(0), 0.0)
    assert book.closed(0, 1.0, lost=False, throttled=True) == []
    assert (book.counts.throttled, book.counts.lost_leases) == (1, 0)
    assert opened(book.tick(1.1)) == [1], "the bucket fills again"


def test_when_the_job_is_over_all_are_told_and_none_is_opened():
    book = book_of(target=3)
    for interval in range(4):
        book.add(task(interval), 0.0)
    live(book, 0)
    live(book, 1, slots=3)
    assert book.close(1.0) == [End(1, "the job is over")]
    assert book.hello(2, (), 1.1) == []
    assert book.ask(2, 1.1) == [End(2, "no more tasks")]
    assert book.closed(0, 1.2, lost=False) == []
    assert book.tick(100.0) == []

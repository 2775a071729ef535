"""No task is lost, whatever happens to functions, and each is done once; and which lease gets what, and how many."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_server.schedule.lease_book import LeaseBook
from graph_server.schedule.lease_events import End, LeaseCommand, Send, TaskKey
from tests.examples import examples
from tests.graph_server.schedule.books import book_of, finish, live, opened, sent, task
from tests.graph_server.schedule.lease_world import World

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=examples(400))
@given(seed=seeds)
def test_every_task_is_done_once_whatever_happens(seed: int):
    World(seed).run()


def test_the_worlds_have_everything_in_them():
    """Else their ending well would mean little."""
    worlds = [World(seed) for seed in range(120)]
    for world in worlds:
        world.run()
    counts = [world.book.counts for world in worlds]
    for kind in ("relaunches", "repeats", "lost_leases", "throttled", "idle", "withdrawn"):
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
    assert [owned.count(lease) for lease in range(5)] == [3, 3, 2, 2, 2]


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
    assert book.counts.handovers == 1


def test_nothing_is_adopted_while_others_are_about_to_come():
    """Then they would find nothing to do, and the first to be there would have everything."""
    book = book_of(intervals=2, target=2)
    book.add(task(0), 0.0)
    book.add(task(1), 0.0)
    assert sent(live(book, 0)) == [(0, 0)]
    finish(book, 0, task(0), 0.1)
    assert sent(book.tick(19.0)) == []
    assert book.hello(1, (), 19.5) == []
    assert sent(book.tick(19.6)) == [], "it lives, but what it asks is still on its way"
    assert sent(book.ask(1, 19.7)) == [(1, 1)]
    assert book.counts.handovers == 0


def test_who_comes_late_gets_what_is_above_the_share_of_others():
    book = book_of(intervals=4, target=2)
    for interval in range(4):
        book.add(task(interval), 0.0)
        live(book, 0, slots=1) if interval == 0 else None
        finish(book, 0, task(interval), 0.1)
    assert set(book.owners().values()) == {0}, "it was alone, for there was one task at a time"
    assert sent(book.add(task(0, 1), 0.2)) == [(0, 0)]
    assert opened(book.add(task(1, 1), 0.2)) == [1]
    assert sent(book.add(task(2, 1), 0.2)) == []
    assert sent(live(book, 1, slots=3)) == [(1, 1), (1, 2)]
    assert book.owners() == {0: 0, 1: 1, 2: 1, 3: 0}


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


def test_leases_that_began_together_end_one_after_another():
    book = book_of(intervals=8, target=8, seconds=100.0)
    for interval in range(8):
        book.add(task(interval), 0.0)
    for lease in range(8):
        live(book, lease)
    ends = {}
    for now in range(50, 101):
        ends |= {c.lease: now for c in book.tick(float(now)) if isinstance(c, End)}
    each = sorted(ends.values())
    assert len(each) == 8
    assert each[0] >= 75
    assert each[-1] == 100
    assert min(late - early for early, late in pairwise(each)) >= 1


def test_its_time_begins_with_its_hello():
    book = book_of(target=1, seconds=10.0)
    book.add(task(0), 0.0)
    book.hello(0, (), 8.0)
    assert book.tick(17.0) == []
    book.ask(0, 17.0)
    assert book.tick(18.0) == []
    book.ask(0, 17.0)
    assert book.ask(0, 18.1) == [End(0, "no more tasks")]

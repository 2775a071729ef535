"""Fewer leases and more, leases without work, and tasks that are taken back."""

import pytest

from graph_server.schedule.idle_limit import IdleAfter
from graph_server.schedule.lease_book import LeaseBook
from graph_server.schedule.lease_events import End, LeaseCommand
from tests.graph_server.schedule.books import book_of, finish, live, opened, sent, task


def ended(commands: list[LeaseCommand]) -> list[int]:
    return [command.lease for command in commands if isinstance(command, End)]


def book_with(leases: int, busy: tuple[int, ...]) -> LeaseBook:
    """One interval each; those that are not busy have done their task."""
    book = book_of(intervals=leases, target=leases)
    for interval in range(leases):
        book.add(task(interval), 0.0)
    for lease in range(leases):
        assert sent(live(book, lease)) == [(lease, lease)]
    for lease in range(leases):
        if lease not in busy:
            finish(book, lease, task(lease), 0.1)
    return book


# ---- another number of leases


def test_idle_leases_end_first():
    book = book_with(4, busy=(0, 3))
    assert ended(book.retarget(2, 1.0)) == [2, 1]
    assert book.target == 2
    assert book.owners() == {0: 0, 3: 3}
    book.validate()


def test_busy_ones_end_when_they_ask_next_and_their_results_count():
    book = book_with(4, busy=(0, 1, 2, 3))
    assert ended(book.retarget(1, 1.0)) == [3, 2, 1], "the slots that wait; their tasks go on"
    assert book.done(3, task(3), 1.1)
    assert book.ask(3, 1.1) == [End(3, "no more tasks")]
    assert sent(book.add(task(3, 1), 1.2)) == [(0, 3)], "its interval is the one's that stays"
    assert book.counts.relaunches == book.counts.lost_leases == 0
    book.validate()


def test_those_on_their_way_end_before_those_that_own_something():
    book = book_of(intervals=3, target=3)
    for interval in range(3):
        book.add(task(interval), 0.0)
    live(book, 0)
    finish(book, 0, task(0), 0.1)
    assert sent(book.retarget(1, 0.2)) == [(0, 1), (0, 2)], "all is its own now"
    assert book.hello(1, (), 0.3) == []
    assert book.ask(1, 0.3) == [End(1, "no more tasks")]
    assert book.ask(2, 0.3) == [End(2, "no more tasks")]
    assert set(book.owners().values()) == {0}


def test_more_are_opened_at_once_if_there_is_work_for_them():
    book = book_of(intervals=6, target=1)
    for interval in range(3):
        book.add(task(interval), 0.0)
    assert opened(book.retarget(6, 1.0)) == [1, 2], "there are three tasks"
    assert opened(book.add(task(3), 1.0)) == [3]


def test_none_is_opened_in_place_of_those_that_end():
    book = book_with(3, busy=(0, 1, 2))
    commands = book.retarget(2, 1.0)
    assert (ended(commands), opened(commands)) == ([2], [])
    assert opened(book.tick(1.1)) == []
    assert book.done(2, task(2), 1.2)
    book.ask(2, 1.2)
    assert opened(book.closed(2, 1.3, lost=False)) == []


@pytest.mark.parametrize(("asked", "got"), [(0, 1), (-3, 1), (5, 5), (99, 6)])
def test_the_target_stays_between_one_and_the_intervals(asked: int, got: int):
    book = book_of(intervals=6, target=3)
    book.retarget(asked, 0.0)
    assert book.target == got


def test_the_same_number_again_changes_nothing():
    book = book_with(3, busy=(1,))
    assert book.retarget(3, 1.0) == []


def test_suspects_are_not_counted_as_those_that_stay():
    book = book_with(3, busy=(0,))
    book.tick(20.1)
    assert book.counts.relaunches == 1
    assert len(ended(book.retarget(1, 20.2))) == 1, "of the two that are trusted"


# ---- leases without work


def idle_book(constant_bytes: int = 0, floor: float = 0.0, target: int = 1) -> LeaseBook:
    """A cold start takes two seconds; the one task of lease 0 is done at 3.0."""
    book = book_of(intervals=2, target=target, idle=IdleAfter(floor, cold_start_seconds=1.0))
    book.add(task(0), 0.0, constant_bytes=constant_bytes)
    book.hello(0, (), 2.0)
    assert sent(book.ask(0, 2.0) + book.ask(0, 2.0)) == [(0, 0)]
    finish(book, 0, task(0), 3.0)
    return book


def idle_until(book: LeaseBook) -> float:
    """In tenths of a second."""
    return next(now / 10 for now in range(30, 1000) if ended(book.tick(now / 10)))


def test_an_idle_lease_ends_when_a_cold_start_would_be_over():
    book = idle_book()
    assert book.tick(5.0) == []
    assert book.tick(5.1) == [End(0, "it has nothing to do")]
    assert (book.counts.idle, book.owners()) == (1, {})


def test_and_its_constants_would_be_there_again():
    assert idle_until(idle_book(constant_bytes=225_000_000)) == pytest.approx(8.1)


def test_never_before_the_floor():
    assert idle_until(idle_book(floor=30.0)) == pytest.approx(33.1)


def test_a_busy_lease_is_not_idle():
    book = idle_book()
    book.add(task(0, 1), 3.0)
    assert ended(book.tick(60.0)) == []


def test_while_others_are_on_their_way_nobody_is_idle():
    """What they will do is not done yet, and the first ones wait for it."""
    book = idle_book(target=2)
    book.add(task(0, 1), 3.0)
    assert opened(book.add(task(1, 1), 3.0)) == [1]
    assert sent(book.hello(1, (), 3.0)) == []
    finish(book, 0, task(0, 1), 3.1)
    finish(book, 0, task(1, 1), 3.1)
    book.closed(1, 3.2, lost=False)
    assert opened(book.add(task(0, 2), 3.2) + book.add(task(1, 2), 3.2)) == [2]
    finish(book, 0, task(0, 2), 3.3)
    finish(book, 0, task(1, 2), 3.3)
    assert ended(book.tick(15.0)) == []
    book.hello(2, (), 15.1)
    assert ended(book.tick(16.0)) == [], "it has not asked yet"
    book.ask(2, 16.1)
    assert ended(book.tick(17.0)) == []
    assert ended(book.tick(30.0)) == [0, 2]


def test_an_ended_idle_lease_is_opened_again_when_there_is_work():
    book = idle_book()
    book.tick(5.1)
    assert opened(book.closed(0, 5.2, lost=False)) == []
    assert opened(book.add(task(0, 1), 60.0)) == [1]
    assert sent(live(book, 1, held=(0,))) == [(1, 0)]


def test_an_idle_lease_lives_on_when_nobody_limits_it():
    book = book_with(1, busy=())
    assert ended(book.tick(200.0)) == []


# ---- taking tasks back


def test_a_task_that_nobody_has_is_taken_back_later_steps_first():
    book = book_of(intervals=3, target=1)
    for interval in range(3):
        book.add(task(interval, interval % 2), 0.0)
    assert book.withdraw() == task(1, 1)
    assert book.withdraw() in (task(0), task(2))
    assert sent(live(book, 0)) != []
    assert book.withdraw() is None, "the last one is in hand"
    assert book.counts.withdrawn == 2
    book.validate()


def test_what_waits_for_a_busy_owner_comes_last():
    """Its constants are there already."""
    book = book_of(intervals=2, target=1)
    book.add(task(0), 0.0)
    live(book, 0, slots=1)
    assert book.done(0, task(0), 0.1)
    book.add(task(0, 5), 0.1)
    book.add(task(1), 0.1)
    assert book.withdraw() == task(1)
    assert book.withdraw() == task(0, 5)


def test_a_late_task_is_taken_back_and_its_late_result_is_a_repeat():
    book = book_of(intervals=1, target=1)
    book.add(task(0), 0.0)
    live(book, 0, slots=1)
    book.tick(20.1)
    assert book.withdraw() == task(0)
    book.validate()
    assert not book.done(0, task(0), 21.0)
    assert (book.counts.repeats, book.counts.tasks) == (1, 0)
    assert book.failed(0, task(0), "error", 21.0) == []


# ---- patience


def test_leases_are_opened_for_tasks_that_have_waited():
    book = book_of(intervals=4, target=4, open_after_seconds=0.5)
    book.add(task(0), 0.0)
    assert opened(book.add(task(1), 0.3)) == []
    assert opened(book.tick(0.6)) == [0]
    assert book.withdraw() is not None
    assert opened(book.tick(0.9)) == [], "one task, one lease"
    book.add(task(2), 1.0)
    assert opened(book.tick(1.4)) == []
    assert opened(book.tick(1.5)) == [1]


def test_what_a_lease_has_in_hand_counts_as_having_waited():
    book = book_of(intervals=2, target=2, open_after_seconds=0.5)
    book.add(task(0), 0.0)
    book.tick(0.5)
    assert sent(live(book, 0, slots=1)) == [(0, 0)]
    book.add(task(1), 0.6)
    assert opened(book.tick(1.1)) == [1]

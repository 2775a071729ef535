"""What is late goes elsewhere, who is suspect gets nothing, and when errors and losses end the job."""

from common.errors import ClusterError, TaskCrashed
from graph_server.schedule.lease_book import LeaseBook
from graph_server.schedule.lease_events import End, GiveUp, LeaseCommand, Send
from graph_server.schedule.loss_limit import LOSS_WINDOW_SECONDS
from tests.graph_server.schedule.books import book_of, finish, live, opened, sent, task

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

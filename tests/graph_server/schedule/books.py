"""A lease book, asked one thing at a time."""

from common.passes import train
from graph_server.schedule.lease_book import LeaseBook
from graph_server.schedule.lease_events import LeaseCommand, LeaseSettings, Open, Send, TaskKey
from graph_server.schedule.stragglers import LateAfter
from graph_server.schedule.token_bucket import TokenBucket


def book_of(intervals: int = 12, target: int = 5, **other: object) -> LeaseBook:
    given: dict[str, object] = {"max_tasks": 64, "seconds": 240.0, "max_losses": 3, "adopt_after_seconds": 1.0}
    late = LateAfter(ratio=5.0, floor_seconds=0.5, prior_seconds=20.0)
    made = LeaseSettings(num_intervals=intervals, target=target, late=late, **given | other)  # type: ignore[arg-type]
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

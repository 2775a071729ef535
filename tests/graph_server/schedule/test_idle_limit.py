"""How long a lease may be idle: a cold start, and its constants at 75 MB/s."""

import pytest

from graph_server.schedule.idle_limit import IdleAfter, IdleLimit


def limit(floor: float = 0.0) -> IdleLimit:
    return IdleLimit(IdleAfter(floor, cold_start_seconds=1.0))


def test_before_anything_was_measured_the_prior_counts():
    assert limit().seconds(()) == 1.0


def test_constants_of_what_it_owns_count_as_they_would_have_to_be_sent():
    made = limit()
    made.needs(0, 75_000_000)
    made.needs(1, 150_000_000)
    assert made.seconds({0, 1, 2}) == pytest.approx(4.0)
    assert made.seconds({1}) == pytest.approx(3.0)
    made.needs(1, 0)
    assert made.seconds({1}) == 1.0


def test_the_slowest_start_counts_and_is_forgotten_slowly():
    made = limit()
    made.started(4.0)
    assert made.seconds(()) == 4.0
    made.started(0.01)
    assert 3.7 < made.seconds(()) < 4.0
    for _ in range(500):
        made.started(0.01)
    assert made.seconds(()) == 1.0, "a warm start is no cold one"


def test_never_under_the_floor():
    made = limit(floor=10.0)
    assert made.seconds(()) == 10.0
    made.started(12.0)
    assert made.seconds(()) == 12.0

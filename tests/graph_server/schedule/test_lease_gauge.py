"""Windows out of samples: whole rounds, long enough, and none in which leases were on their way."""

import pytest

from common.passes import evaluate, predict, train
from graph_server.schedule.lease_events import LeaseLoad
from graph_server.schedule.lease_gauge import WINDOW_SECONDS, LeaseGauge, Totals

FULL = LeaseLoad(waiting=4, opening=0, live=2, in_hand=4, slots=4)
HALF = LeaseLoad(waiting=0, opening=0, live=3, in_hand=2, slots=6)
COMING = LeaseLoad(waiting=4, opening=1, live=2, in_hand=4, slots=4)


def totals(tasks: int, *, throttled: int = 0, core_seconds: float = 0.0) -> Totals:
    return Totals(tasks, throttled, core_seconds)


def test_a_window_is_what_was_seen_between_two_rounds():
    gauge = LeaseGauge()
    gauge.sample(FULL)
    assert gauge.round_began(totals(10, throttled=1, core_seconds=2.0), 5.0) is None
    gauge.sample(FULL)
    gauge.sample(HALF)
    window = gauge.round_began(totals(50, throttled=3, core_seconds=4.0), 9.0)
    assert window is not None
    assert (window.seconds, window.tasks, window.rate, window.leases) == (4.0, 40, 10.0, 3)
    assert (window.busy, window.waiting, window.cores, window.throttled) == (0.6, 2.0, 0.5, 2)


def test_the_next_window_begins_where_the_last_one_ended():
    gauge = LeaseGauge()
    gauge.sample(HALF)
    gauge.round_began(totals(0), 0.0)
    for number in (1, 2, 3):
        gauge.sample(HALF)
        window = gauge.round_began(totals(20 * number), 2.0 * number)
        assert window is not None
        assert (window.seconds, window.tasks) == (2.0, 20)


def test_short_rounds_make_one_window():
    gauge = LeaseGauge()
    gauge.sample(HALF)
    gauge.round_began(totals(0), 0.0)
    gauge.sample(HALF)
    assert gauge.round_began(totals(1), 0.4 * WINDOW_SECONDS) is None
    assert gauge.round_began(totals(2), 0.8 * WINDOW_SECONDS) is None
    window = gauge.round_began(totals(3), 1.2 * WINDOW_SECONDS)
    assert window is not None
    assert window.tasks == 3


def test_no_window_begins_while_leases_are_on_their_way():
    gauge = LeaseGauge()
    gauge.sample(COMING)
    assert gauge.round_began(totals(0), 0.0) is None
    assert gauge.round_began(totals(10), 10.0) is None
    gauge.sample(FULL)
    assert gauge.round_began(totals(20), 20.0) is None
    gauge.sample(COMING)
    window = gauge.round_began(totals(30), 30.0)
    assert window is not None, "a successor is no new number of leases"
    assert window.tasks == 10


def test_another_number_of_leases_begins_anew():
    gauge = LeaseGauge()
    gauge.sample(FULL)
    gauge.round_began(totals(0), 0.0)
    gauge.sample(FULL)
    gauge.changed()
    gauge.sample(COMING)
    assert gauge.round_began(totals(10), 10.0) is None
    gauge.sample(HALF)
    assert gauge.round_began(totals(20), 20.0) is None
    gauge.sample(HALF)
    window = gauge.round_began(totals(30), 30.0)
    assert window is not None
    assert (window.tasks, window.leases) == (10, 3)


def test_without_a_lease_there_is_no_window():
    gauge = LeaseGauge()
    gauge.sample(HALF)
    gauge.round_began(totals(0), 0.0)
    gauge.sample(LeaseLoad(waiting=0, opening=0, live=0, in_hand=0, slots=0))
    assert gauge.round_began(totals(10), 10.0) is None


@pytest.mark.parametrize(
    ("passes", "rounds"),
    [
        ([train(1), train(1), train(2)], [True, False, True]),
        ([train(1), evaluate(1), train(2), evaluate(2), predict(2, 1)], [True, False, True, False, False]),
        ([train(1), train(2), train(1), train(2), train(3)], [True, True, False, False, True]),
    ],
)
def test_a_round_begins_with_the_first_task_of_a_newer_training_pass(passes: list, rounds: list[bool]):
    gauge = LeaseGauge()
    assert [gauge.is_round(pass_) for pass_ in passes] == rounds

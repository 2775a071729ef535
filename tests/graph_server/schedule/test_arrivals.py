"""Which rows a Gather still waits for."""

from common.passes import evaluate, train
from graph_server.schedule.arrivals import Arrivals

FEEDS = {1: (0, 1), 4: (0, 3), 5: ()}
"""Own intervals 1, 4 and 5 of six."""


def arrivals() -> Arrivals:
    return Arrivals(tuple(FEEDS), FEEDS, 6)


def test_the_last_feed_completes_an_interval():
    rows = arrivals()
    assert rows.add(train(1), "source1", 0) == []
    assert not rows.complete(train(1), "source1", 1)
    assert rows.add(train(1), "source1", 1) == [1]
    assert rows.complete(train(1), "source1", 1)
    assert not rows.complete(train(1), "source1", 4)
    assert rows.add(train(1), "source1", 3) == [4]


def test_one_arrival_may_complete_several():
    rows = Arrivals((2, 3), {2: (0,), 3: (0,)}, 4)
    assert rows.add(train(1), "source1", 0) == [2, 3]


def test_a_repeat_counts_once():
    rows = arrivals()
    rows.add(train(1), "source1", 0)
    assert rows.add(train(1), "source1", 0) == []
    assert not rows.complete(train(1), "source1", 1)
    assert rows.add(train(1), "source1", 1) == [1]
    assert rows.add(train(1), "source1", 1) == []


def test_an_interval_that_reads_nothing_is_complete_from_the_start():
    assert arrivals().complete(train(1), "source1", 5)


def test_what_nobody_here_reads_completes_nobody():
    assert arrivals().add(train(1), "source1", 2) == []


def test_passes_and_tables_are_apart():
    rows = arrivals()
    rows.add(train(1), "source1", 0)
    rows.add(train(1), "source1", 1)
    assert rows.complete(train(1), "source1", 1)
    assert not rows.complete(train(1), "source2", 1)
    assert not rows.complete(evaluate(1), "source1", 1)
    assert not rows.complete(train(2), "source1", 1)


def test_all_arrived_means_every_interval_of_the_graph():
    rows = arrivals()
    for interval in (0, 1, 2, 3, 4):
        rows.add(train(1), "source1", interval)
    assert not rows.all_arrived(train(1), "source1")
    rows.add(train(1), "source1", 5)
    assert rows.all_arrived(train(1), "source1")
    assert not rows.all_arrived(train(1), "source2")


def test_passes_that_are_over_are_forgotten_and_later_ones_kept():
    rows = arrivals()
    for pass_ in (train(1), evaluate(1), train(2)):
        rows.add(pass_, "source1", 0)
        rows.add(pass_, "source1", 1)
    rows.forget_before(2)
    assert not rows.complete(train(1), "source1", 1)
    assert not rows.complete(evaluate(1), "source1", 1)
    assert rows.complete(train(2), "source1", 1)


def test_in_async_rows_of_a_later_epoch_count_for_earlier_ones():
    rows = Arrivals(tuple(FEEDS), FEEDS, 6, staleness=1)
    assert rows.add(train(3), "source1", 0) == []
    assert rows.add(train(1), "source1", 1) == [1]
    assert rows.complete(train(1), "source1", 1)
    assert not rows.complete(train(2), "source1", 1)
    assert rows.add(train(2), "source1", 1) == [1]
    assert rows.complete(train(2), "source1", 1)
    assert not rows.complete(train(3), "source1", 1)
    assert rows.add(train(1), "source1", 1) == []


def test_far_behind_nothing_is_counted():
    rows = Arrivals(tuple(FEEDS), FEEDS, 6, staleness=0)
    rows.add(train(100), "source1", 0)
    rows.add(train(100), "source1", 1)
    assert rows.complete(train(100), "source1", 1)
    assert not rows.complete(train(90), "source1", 1)


def test_evaluations_are_exact_in_async_too():
    rows = Arrivals(tuple(FEEDS), FEEDS, 6, staleness=1)
    rows.add(evaluate(2), "source1", 0)
    rows.add(evaluate(2), "source1", 1)
    assert rows.complete(evaluate(2), "source1", 1)
    assert not rows.complete(evaluate(1), "source1", 1)


def test_a_graph_server_without_intervals_may_hear_of_rows():
    assert Arrivals((), {}, 6).add(train(1), "source1", 3) == []

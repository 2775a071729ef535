"""What is made of the epochs of a run, and of several runs."""

import pytest

from benchmarks.outcome import Outcome, Overhead, Rounds, deviation, ratio

RUN = Outcome(seconds=(9.0, 5.0, 1.0, 3.0, 2.0), losses=(3.0, 2.0), peak_bytes=7)


def test_the_steady_epoch_is_the_median_after_the_warm_up():
    assert RUN.steady == 2.0
    assert Outcome(seconds=(9.0, 5.0)).steady == 5.0
    assert Outcome(seconds=(9.0,)).steady == 9.0


def test_rounds_are_taken_together_and_failures_left_out():
    rounds = Rounds((RUN, Outcome(seconds=(1.0, 1.0, 4.0), peak_bytes=9), Outcome(why="took too long")))
    assert (rounds.steady, rounds.first, rounds.peak_bytes, rounds.why) == (3.0, 5.0, 9, "")
    assert rounds.losses == (3.0, 2.0)


def test_of_nothing_nothing_is_known():
    rounds = Rounds((Outcome(why="not installed"),))
    assert (rounds.steady, rounds.first, rounds.peak_bytes, rounds.losses) == (None, None, None, ())
    assert rounds.why == "not installed"
    assert Rounds(()).why == "not run"


def test_a_ratio_needs_both():
    assert ratio(6.0, 2.0) == 3.0
    assert ratio(None, 2.0) is None
    assert ratio(2.0, None) is None


def test_curves_are_compared_where_both_are():
    assert deviation((2.0, 1.0, 5.0), (2.0, 0.9)) == pytest.approx(0.1)
    assert deviation((), (1.0,)) is None


def test_an_overhead_is_shared_by_the_hops():
    assert Overhead(0.6, 6).per_hop == pytest.approx(0.1)

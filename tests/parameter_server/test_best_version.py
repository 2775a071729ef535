"""Best version, ties, improvement."""

import pytest

from parameter_server.best_version import BestVersion


def observed(metrics, **options):
    best = BestVersion(**options)
    return best, [best.observe(version, metric) for version, metric in enumerate(metrics, start=1)]


def test_the_best_is_the_earliest_of_equals():
    best, changed = observed([0.5, 0.7, 0.7, 0.6, 0.8, 0.8])
    assert changed == [True, True, False, False, True, False]
    assert (best.version, best.metric) == (5, 0.8)


def test_lower_may_be_better():
    best, changed = observed([2.0, 1.0, 1.0, 3.0], higher_is_better=False)
    assert changed == [True, True, False, False]
    assert (best.version, best.evaluations_without_improvement) == (2, 2)
    assert (best.reached(1.0), best.reached(0.9)) == (True, False)


def test_without_a_valid_mask_the_last_is_the_best():
    best, changed = observed([None, None, None])
    assert changed == [True, True, True]
    assert best.version == 3
    assert not best.reached(0.0)


@pytest.mark.parametrize(("min_delta", "without"), [(0.0, 0), (0.1, 3), (0.05, 1)])
def test_small_steps_are_no_improvement_but_still_the_best(min_delta, without):
    best, _ = observed([0.5, 0.53, 0.56, 0.59], min_delta=min_delta)
    assert best.version == 4
    assert best.evaluations_without_improvement == without


def test_a_target_that_is_just_reached():
    best, _ = observed([0.5, 0.7])
    assert (best.reached(0.7), best.reached(0.71)) == (True, False)

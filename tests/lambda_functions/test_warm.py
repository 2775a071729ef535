"""What a warm container keeps: constants of one job up to a limit, and the last weights."""

import numpy as np

from lambda_functions.warm import WarmContainer


def rows(size: int) -> np.ndarray:
    return np.zeros(size, np.uint8)


def test_the_oldest_constants_give_way_and_that_is_told_once():
    warm = WarmContainer(limit=100)
    for interval in range(4):
        warm.keep((interval, "labels"), rows(40))
    assert warm.held() == ((2, "labels"), (3, "labels"))
    assert warm.take_evicted() == ((0, "labels"), (1, "labels"))
    assert warm.take_evicted() == ()


def test_a_constant_above_the_limit_alone_is_not_kept():
    warm = WarmContainer(limit=100)
    warm.keep((0, "labels"), rows(60))
    warm.keep((1, "labels"), rows(101))
    assert warm.held() == ()
    assert warm.take_evicted() == ((0, "labels"), (1, "labels"))


def test_exactly_the_limit_fits():
    warm = WarmContainer(limit=100)
    warm.keep((0, "labels"), rows(100))
    assert warm.held() == ((0, "labels"),)


def test_only_what_is_asked_for_and_there_is_given():
    warm = WarmContainer(limit=100)
    warm.keep((0, "labels"), rows(1))
    warm.keep((1, "masks"), rows(1))
    assert list(warm.get(0, ("labels", "masks"))) == ["labels"]


def test_the_same_job_finds_everything_again():
    warm = WarmContainer(limit=100)
    warm.enter("one")
    warm.keep((0, "labels"), rows(1))
    warm.weights_version, warm.weights = 3, {"W": rows(1)}
    warm.enter("one")
    assert (warm.held(), warm.weights_version) == (((0, "labels"),), 3)


def test_another_job_finds_nothing():
    warm = WarmContainer(limit=100)
    warm.enter("one")
    warm.keep((0, "labels"), rows(60))
    warm.keep((1, "labels"), rows(60))
    warm.weights_version, warm.weights = 3, {"W": rows(1)}
    warm.enter("two")
    assert (warm.held(), warm.weights_version, warm.weights, warm.take_evicted()) == ((), -1, {}, ())

"""How fast leases may be opened: never faster than the rate, slower after every throttled one, and it recovers."""

import random

from graph_server.schedule.token_bucket import TokenBucket

LONG_AGO = 1000.0


def taken(bucket: TokenBucket, begin: float, seconds: float, step: float = 0.01) -> int:
    """How many when one asks all the time."""
    return sum(bucket.take(begin + number * step) for number in range(round(seconds / step)))


def test_a_burst_and_then_the_rate():
    bucket = TokenBucket(rate=5, burst=10)
    assert [bucket.take(LONG_AGO) for _ in range(11)] == [True] * 10 + [False]
    assert taken(bucket, LONG_AGO, 4.0) in (19, 20)


def test_it_does_not_save_more_than_a_burst():
    bucket = TokenBucket(rate=5, burst=3)
    assert sum(bucket.take(LONG_AGO + 3600) for _ in range(100)) == 3


def test_a_throttled_one_empties_it_and_halves_the_rate():
    bucket = TokenBucket(rate=8, burst=10)
    bucket.throttled(LONG_AGO)
    assert not bucket.take(LONG_AGO)
    assert taken(bucket, LONG_AGO, 4.0) in (15, 16)


def test_it_never_stops_altogether():
    bucket = TokenBucket(rate=8, burst=10, slowest=0.5)
    for _ in range(20):
        bucket.throttled(LONG_AGO)
    assert not bucket.take(LONG_AGO + 1.9)
    assert bucket.take(LONG_AGO + 2.0)


def test_it_recovers_with_every_success_up_to_the_rate():
    bucket = TokenBucket(rate=8, burst=2)
    bucket.throttled(LONG_AGO)
    for _ in range(10):
        bucket.succeeded()
    assert taken(bucket, LONG_AGO, 10.0) in (79, 80)


def test_time_that_seems_to_run_backwards_gives_nothing():
    die, bucket = random.Random(1), TokenBucket(rate=1, burst=1)
    bucket.take(LONG_AGO)
    assert not any(bucket.take(LONG_AGO - die.random() * 100) for _ in range(100))
    assert bucket.take(LONG_AGO + 1)

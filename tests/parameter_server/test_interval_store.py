"""One optimizer step per interval: in line, the same on every shard."""

import random

import numpy as np
import pytest

from common.errors import ScheduleError, TensorTaskError
from common.passes import Pass, PassKind
from common.sharding import join, shard
from parameter_server.interval_store import IntervalSteps, IntervalWeightStore, Place
from parameter_server.optimizers import Adam, Sgd
from parameter_server.weight_store import GradientKey, Pushed, TooLate

WEIGHTS = {"0.W": np.arange(12, dtype=np.float32).reshape(6, 2), "1.b": np.ones(3, np.float32)}
SCALES = (2.0, 0.0, 4.0)
"""The middle interval has no train vertices."""


def key(interval, parameter, epoch=1, version=0, generation=1):
    return GradientKey(generation, Pass(epoch, PassKind.TRAIN, version), "s", interval, parameter)


def gradient(interval, parameter, epoch=1):
    seed = [interval, epoch, len(parameter)]
    return np.random.default_rng(seed).normal(size=WEIGHTS[parameter].shape).astype(np.float32)


def store(number=0, count=1, optimizer=None):
    optimizer = optimizer or Adam(0.1)
    steps = IntervalSteps(optimizer, SCALES, leads=number == 0)
    return IntervalWeightStore(shard(WEIGHTS, count, number), optimizer, steps, staleness=1)


def push(target, interval, epoch=1, *, number=0, count=1, version=0):
    for parameter in WEIGHTS:
        rows = shard({parameter: gradient(interval, parameter, epoch)}, count, number)[parameter]
        assert target.push(key(interval, parameter, epoch, version), rows) is Pushed.ACCEPTED


def test_a_step_is_taken_when_all_of_an_intervals_gradients_are_there():
    target = store(optimizer=Sgd(1.0))
    assert target.push(key(2, "0.W"), gradient(2, "0.W")) is Pushed.ACCEPTED
    assert target.version == 0
    assert target.push(key(2, "1.b"), gradient(2, "1.b")) is Pushed.ACCEPTED
    assert target.version == 1
    for name, rows in target.pull(1).items():
        scaled = (gradient(2, name).astype(np.float64) * SCALES[2]).astype(np.float32)
        np.testing.assert_array_equal(rows, WEIGHTS[name] - scaled)


def test_a_repeat_counts_once_before_and_after_its_step():
    target = store()
    target.push(key(0, "0.W"), gradient(0, "0.W"))
    assert target.push(key(0, "0.W"), gradient(0, "0.W")) is Pushed.REPEATED
    target.push(key(0, "1.b"), gradient(0, "1.b"))
    for parameter in WEIGHTS:
        assert target.push(key(0, parameter), gradient(0, parameter)) is Pushed.REPEATED
    assert target.version == 1


def test_a_step_that_is_not_finite_is_refused_again_and_again():
    target = store(optimizer=Sgd(1e38))
    target.push(key(2, "0.W"), 1e30 * gradient(2, "0.W"))
    for _ in range(2):
        with pytest.raises(TensorTaskError) as caught:
            target.push(key(2, "1.b"), 1e30 * gradient(2, "1.b"))
        assert "weight 0.W after train 1 of interval 2: 12 of 12 values are not finite" in str(caught.value)
        assert target.version == 0


def test_an_interval_without_train_vertices_makes_no_step():
    target = store()
    push(target, 1)
    assert target.version == 0
    assert target.push(key(1, "0.W"), gradient(1, "0.W")) is Pushed.REPEATED


def test_another_generation_is_too_late():
    assert store().push(key(0, "0.W", generation=0), gradient(0, "0.W")) is Pushed.TOO_LATE


def test_a_beginning_pins_the_version_reached_until_the_next_one():
    target = store()
    assert target.begin(1, 1) == 0
    for epoch in (1, 2):
        push(target, 0, epoch)
        push(target, 2, epoch)
    assert target.versions == (0, 3, 4)
    push(target, 1)
    assert target.begin(1, 2) == 4
    push(target, 1, 2)
    push(target, 0, 3)
    with pytest.raises(TooLate):
        target.pull(0)
    assert target.versions == (4, 5)


@pytest.mark.parametrize("seed", range(20))
def test_every_shard_takes_the_same_steps_in_the_same_order(seed):
    """Whatever comes first where; a follower that has not heard of a place waits with its step."""
    die, count = random.Random(seed), 3
    shards, alone = [store(number, count) for number in range(count)], store()
    coming = {number: [(i, e) for e in (1, 2) for i in die.sample(range(3), 3)] for number in range(count)}
    told = [0] * count
    news = []
    while any(coming.values()) or min(told[1:]) < len(news):
        number = die.randrange(count)
        if number == 0 and coming[0]:
            interval, epoch = coming[0][0]
            assert shards[0].begin(interval, epoch) == alone.begin(interval, epoch)
            push(alone, interval, epoch)
        if coming[number]:
            interval, epoch = coming[number].pop(0)
            push(shards[number], interval, epoch, number=number, count=count)
        place, entries = shards[0].news()
        assert place == len(news)
        news += entries
        if number and told[number] < len(news):
            shards[number].line_up(told[number], news[told[number] :])
            shards[number].line_up(max(0, told[number] - 1), news[max(0, told[number] - 1) :])
            told[number] = len(news)
    assert {one.version for one in shards} == {alone.version} == {4}
    joined = join([dict(one.pull(4)) for one in shards])
    assert {name: rows.tobytes() for name, rows in joined.items()} == {
        name: rows.tobytes() for name, rows in alone.pull(4).items()
    }


def test_a_gap_in_the_line_is_refused():
    with pytest.raises(ScheduleError) as caught:
        store(1, 2).line_up(2, [Place(0, 1, begins=True)])
    assert str(caught.value) == "place 2 of the line was told after place -1"


def test_from_a_pause_on_one_step_per_epoch():
    target = store(optimizer=Sgd(0.5))
    for interval in range(3):
        target.begin(interval, 1)
        push(target, interval)
    assert target.version == 2
    target.step_per_epoch(2)
    before = dict(target.pull(2))
    for interval in range(3):
        push(target, interval, 2, version=2)
    assert target.version == 3
    for name, rows in target.pull(3).items():
        total = sum(gradient(interval, name, 2).astype(np.float64) for interval in range(3)).astype(np.float32)
        np.testing.assert_allclose(rows, before[name] - 0.5 * total, rtol=1e-6)
    assert target.versions == (2, 3)

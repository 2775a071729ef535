"""Predicted weights: carried on along the newest step; versions, steps and checkpoints stay as they are."""

import numpy as np
import pytest

from common.errors import ScheduleError
from common.passes import Pass, PassKind
from common.sharding import join, shard
from parameter_server.optimizers import make_optimizer
from parameter_server.predicting_store import PredictingWeightStore
from parameter_server.saved_state import ClockRecord, Resumed
from parameter_server.weight_store import GradientKey, TooLate, WeightStore

RNG = np.random.default_rng(3)
WEIGHTS = {"0.W": RNG.standard_normal((5, 4)).astype(np.float32), "0.b": RNG.standard_normal(4).astype(np.float32)}
GRADIENTS = [
    {name: RNG.standard_normal(rows.shape).astype(np.float32) for name, rows in WEIGHTS.items()} for _ in "12345"
]


def store(kind=PredictingWeightStore, staleness=2, weights=WEIGHTS, **more):
    return kind(weights, make_optimizer("adam", 0.01), 1, staleness=staleness, **more)


def trained(target, num_epochs, part=lambda rows: rows):
    for epoch in range(target.version + 1, num_epochs + 1):
        for name, gradient in part(GRADIENTS[epoch - 1]).items():
            target.push(GradientKey(1, Pass(epoch, PassKind.TRAIN, epoch - 1), "∇ApplyVertex 0", 0, name), gradient)
    return target


def raw(rows):
    return {name: array.tobytes() for name, array in rows.items()}


def test_missing_updates_are_made_up_along_the_newest_step():
    target = trained(store(), 3)
    newest, before = target.pull(3), target.pull(2)
    for missing in (1, 2):
        for name, rows in target.pull(3, missing).items():
            np.testing.assert_array_equal(rows, newest[name] + np.float32(missing) * (newest[name] - before[name]))


def test_with_nothing_missing_and_before_the_first_step_a_version_is_given_as_it_is():
    target = trained(store(), 2)
    assert target.pull(2, 0) is not target.pull(2, 1)
    assert raw(target.pull(2, 0)) == raw(target.pull(2))
    assert raw(target.pull(0, 2)) == raw(WEIGHTS)
    assert target.pull(3, 1) is None


def test_versions_are_those_of_a_store_that_predicts_nothing():
    target, plain = store(), store(WeightStore)
    for epoch in range(1, 6):
        trained(target, epoch)
        trained(plain, epoch)
        for missing in (0, 1, 2):
            target.pull(epoch, missing)
        assert raw(target.pull(epoch)) == raw(plain.pull(epoch))
    assert {*plain.versions, 1} == {*target.versions} == {1, 2, 3, 4, 5}


def test_shards_together_predict_what_the_whole_does():
    whole = trained(store(), 3).pull(3, 2)
    for count in (2, 3, 7):
        parts = []
        for number in range(count):
            part = store(weights=shard(WEIGHTS, count, number))
            parts.append(trained(part, 3, lambda rows, of=(count, number): shard(rows, *of)).pull(3, 2))
        assert raw(join(parts)) == raw(whole)


def test_a_prediction_cannot_be_written_to_and_goes_with_its_version():
    target = trained(store(staleness=1), 2)
    with pytest.raises(ValueError, match="read-only"):
        target.pull(2, 1)["0.W"][0] = 1.0
    alone = trained(store(staleness=1), 2)
    assert target.held_bytes - alone.held_bytes == sum(rows.nbytes for rows in WEIGHTS.values())
    trained(target, 5)
    trained(alone, 5)
    assert target.held_bytes == alone.held_bytes
    assert target.stash_bytes > alone.stash_bytes
    with pytest.raises(TooLate):
        target.pull(1, 1)


def test_more_than_the_staleness_cannot_be_missing():
    with pytest.raises(ScheduleError, match="lacks 3 updates") as caught:
        trained(store(), 2).pull(2, 3)
    assert caught.value.why == "with staleness 2 it lacks 2 at most"


def test_after_a_resume_there_is_no_step_to_carry_on_along_until_one_is_made():
    saved = trained(store(), 2)
    target = store(resumed=Resumed(saved.state(), ClockRecord(epoch=2, version=2)))
    assert raw(target.pull(2, 1)) == raw(saved.pull(2))
    assert raw(trained(target, 3).pull(3, 1)) == raw(trained(saved, 3).pull(3, 1))


@pytest.mark.parametrize(
    ("pass_", "missing"),
    [
        (Pass(5, PassKind.TRAIN, 4), 0),
        (Pass(5, PassKind.TRAIN, 3), 1),
        (Pass(5, PassKind.TRAIN, 40), 0),
        (Pass(5, PassKind.EVALUATE, 5), 0),
        (Pass(5, PassKind.PREDICT, 2), 0),
    ],
)
def test_a_pass_knows_how_many_updates_it_lacks(pass_, missing):
    assert pass_.missing_updates == missing

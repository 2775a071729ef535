"""The weight store: one step per epoch, whatever the order, the repeats and the sharding."""

import functools

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import passes
from common.errors import BadFrame, ModelError, ScheduleError, TensorTaskError
from common.sharding import join, shard
from parameter_server import weight_store
from parameter_server.optimizers import make_optimizer
from parameter_server.weight_store import GradientKey, Pushed, TooLate, WeightStore

STAGES = {"0.W": "∇ApplyVertex 0", "1.W": "∇ApplyVertex 1", "1.b": "∇ApplyVertex 1"}
SHAPES = {"0.W": (5, 4), "1.W": (4, 3), "1.b": (3,)}


def weights(dtype=np.float32):
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape in SHAPES.items()}


def gradient(epoch, interval, name, dtype=np.float32):
    rng = np.random.default_rng([epoch, interval, len(name), ord(name[0]), ord(name[-1])])
    return np.ldexp(rng.standard_normal(SHAPES[name]), rng.integers(-12, 12)).astype(dtype)


def key(epoch=1, interval=0, name="0.W", generation=1):
    return GradientKey(generation, passes.train(epoch), STAGES[name], interval, name)


def store(num_intervals=3, dtype=np.float32, name="adam"):
    return WeightStore(weights(dtype), make_optimizer(name, 0.01, 0.0, 5e-4), num_intervals)


def everything(epoch, num_intervals):
    return [(epoch, interval, name) for interval in range(num_intervals) for name in SHAPES]


def push_all(target, order):
    for item in order:
        target.push(key(*item), gradient(*item))


def trained(num_epochs, num_intervals=3):
    target = store(num_intervals)
    for epoch in range(1, num_epochs + 1):
        push_all(target, everything(epoch, num_intervals))
    return target


def raw(pulled):
    return {name: array.tobytes() for name, array in pulled.items()}


def test_version_0_is_what_it_was_given():
    given_weights = weights()
    target = WeightStore(given_weights, make_optimizer("sgd", 0.1), 2)
    given_weights["0.W"][:] = 9.0
    assert raw(target.pull(0)) == raw(weights())
    assert (target.version, target.versions) == (0, (0,))


def test_the_last_gradient_of_an_epoch_makes_the_next_version():
    target = store(2)
    *early, last = everything(1, 2)
    push_all(target, early)
    assert target.version == 0
    assert target.pull(1) is None
    assert target.push(key(*last), gradient(*last)) is Pushed.ACCEPTED
    assert target.version == 1
    assert raw(target.pull(1)) != raw(target.pull(0))


def test_the_step_is_the_optimizers_on_the_sum():
    target = store(2, np.float64, name="sgd")
    for item in everything(1, 2):
        target.push(key(*item), gradient(*item, np.float64))
    for name, weight in weights(np.float64).items():
        total = gradient(1, 0, name, np.float64) + gradient(1, 1, name, np.float64)
        np.testing.assert_allclose(target.pull(1)[name], weight - 0.01 * (total + 5e-4 * weight), rtol=1e-12)


def test_the_sum_is_rounded_once():
    """1 + 2^-30 - 1 is lost if float32 gradients are added in float32."""
    target = WeightStore({"0.W": np.zeros(1, np.float32)}, make_optimizer("sgd", 1.0), 3)
    for interval, value in enumerate([1.0, 2.0**-30, -1.0]):
        target.push(key(1, interval), np.array([value], np.float32))
    assert target.pull(1)["0.W"].tolist() == [-(2.0**-30)]


@settings(deadline=None)
@given(st.data())
def test_any_order_with_repeats_gives_the_same_bits(data):
    num_intervals = data.draw(st.integers(1, 7))
    dtype, name = data.draw(st.sampled_from([(np.float64, "sgd"), (np.float32, "adam")]))
    target, in_order = store(num_intervals, dtype, name), store(num_intervals, dtype, name)
    for epoch in (1, 2):
        pushed = []
        for item in data.draw(st.permutations(everything(epoch, num_intervals))):
            assert target.push(key(*item), gradient(*item, dtype)) is Pushed.ACCEPTED
            pushed.append(item)
            if data.draw(st.booleans()):
                again = data.draw(st.sampled_from(pushed))
                assert target.push(key(*again), gradient(*again, dtype)) is Pushed.REPEATED
        for item in everything(epoch, num_intervals):
            in_order.push(key(*item), gradient(*item, dtype))
    assert raw(target.pull(2)) == raw(in_order.pull(2))


@pytest.mark.parametrize("num_shards", [1, 2, 3, 7])
def test_shards_together_are_the_unsharded_store(num_shards):
    """With seven shards some hold no row of 1.b, and still count its gradients."""
    optimizer, parts = make_optimizer("adam", 0.01, 0.0, 5e-4), []
    for number in range(num_shards):
        part = WeightStore(shard(weights(), num_shards, number), optimizer, 3)
        for item in everything(1, 3) + everything(2, 3):
            part.push(key(*item), shard({"": gradient(*item)}, num_shards, number)[""])
        parts.append(part.pull(2))
    assert raw(join(parts)) == raw(trained(2).pull(2))


class LeftFold(weight_store.TreeSum):
    """A deliberate defect: adds in the order of arrival."""

    def __init__(self, num_leaves):
        super().__init__(num_leaves)
        self.arrived = []

    def add(self, leaf, value):
        self.arrived.append(np.asarray(value, np.float64))
        return super().add(leaf, value)

    def total(self):
        return functools.reduce(np.add, self.arrived)


def test_a_regrouped_sum_is_noticed(monkeypatch):
    """Mutation: gradients added as they come end in other bits than the tree's.

    In float64 and with SGD: rounding to float32, and Adam's first step (lr · sign), would hide the last bits.
    """

    def bits(order):
        target = store(12, np.float64, "sgd")
        for item in order:
            target.push(key(*item), gradient(*item, np.float64))
        return raw(target.pull(1))

    forward = everything(1, 12)
    right = bits(forward)
    assert bits(forward[::-1]) == right
    monkeypatch.setattr(weight_store, "TreeSum", LeftFold)
    assert bits(forward) != right
    assert bits(forward) != bits(forward[::-1])


def test_a_dropped_gradient_is_noticed():
    target = store(3)
    push_all(target, [item for item in everything(1, 3) if item != (1, 1, "1.b")])
    assert target.pull(1) is None


def test_a_repeated_gradient_counts_once():
    target = store()
    assert target.push(key(), gradient(1, 0, "0.W")) is Pushed.ACCEPTED
    assert target.push(key(), gradient(1, 0, "0.W")) is Pushed.REPEATED
    assert target.received(1) == 1


def test_a_gradient_of_a_finished_epoch_is_a_repeat():
    target = trained(2)
    before = raw(target.pull(2))
    assert target.push(key(1), gradient(1, 0, "0.W")) is Pushed.REPEATED
    assert target.push(key(2), gradient(2, 0, "0.W")) is Pushed.REPEATED
    assert raw(target.pull(2)) == before
    assert [target.received(epoch) for epoch in range(5)] == [0, 9, 9, 0, 0]


def test_an_older_generation_is_too_late():
    target = WeightStore(weights(), make_optimizer("sgd", 0.1), 3, generation=2)
    assert target.push(key(generation=1), gradient(1, 0, "0.W")) is Pushed.TOO_LATE
    assert target.received(1) == 0
    assert target.push(key(generation=2), gradient(1, 0, "0.W")) is Pushed.ACCEPTED


def test_the_newest_two_versions_are_held():
    target = trained(4)
    assert target.versions == (3, 4)
    with pytest.raises(TooLate) as caught:
        target.pull(1)
    assert str(caught.value) == (
        "weights version 1 is gone\n"
        "  why: held are versions 3, 4: the newest and those that are kept\n"
        "  fix: keep a version before two newer ones are made"
    )
    assert isinstance(caught.value, TensorTaskError)


def test_a_kept_version_stays_until_it_is_released():
    target = trained(1)
    kept = raw(target.pull(1))
    target.keep(1)
    target.keep(1)
    for epoch in (2, 3, 4):
        push_all(target, everything(epoch, 3))
    assert target.versions == (1, 3, 4)
    assert raw(target.pull(1)) == kept
    target.release(1)
    target.release(1)
    assert target.versions == (3, 4)


def test_releasing_a_new_version_does_not_drop_it():
    target = trained(2)
    target.keep(2)
    target.release(2)
    assert target.versions == (1, 2)


def test_a_version_that_is_gone_or_to_come_cannot_be_kept():
    target = trained(3)
    with pytest.raises(TooLate, match="weights version 0 is gone"):
        target.keep(0)
    with pytest.raises(ScheduleError, match="keep weights version 4\n  why: the newest weights version is 3"):
        target.keep(4)


def test_versions_cannot_be_written():
    target = trained(1)
    for version in (0, 1):
        with pytest.raises(ValueError, match="read-only"):
            target.pull(version)["0.W"][0] = 1.0
    with pytest.raises(TypeError):
        target.pull(1)["0.W"] = np.zeros(3)


def test_the_senders_buffer_may_be_used_again():
    target, buffer = store(), np.empty((5, 4), np.float32)
    for item in everything(1, 3):
        array = gradient(*item)
        if item[2] == "0.W":
            buffer[:] = array
            array = buffer
        target.push(key(*item), array)
        buffer[:] = np.nan
    assert raw(target.pull(1)) == raw(trained(1).pull(1))


def test_held_bytes():
    num_values = sum(int(np.prod(shape)) for shape in SHAPES.values())
    target = store()
    assert target.held_bytes == 4 * num_values * 3  # weights, mean, square
    target.push(key(), gradient(1, 0, "0.W"))
    assert target.held_bytes == 4 * (num_values * 3 + 20)
    assert trained(3).held_bytes == 4 * num_values * 4  # one version more


def test_a_gradient_that_is_not_finite_stops_the_job():
    target, bad = store(), gradient(1, 2, "0.W")
    bad[0, :2] = np.nan, np.inf
    for _ in range(2):
        with pytest.raises(TensorTaskError) as caught:
            target.push(key(1, 2), bad)
        assert str(caught.value) == (
            "gradient of 0.W, interval 2, train 1: 2 of 20 values are not finite\n"
            "  why: one step with them would make every later weight NaN\n"
            "  fix: set a smaller training.lr; if it happens in the first epoch, look for extreme feature values"
        )
    assert target.received(1) == 0


def test_a_sum_too_large_for_the_weights_dtype_is_refused_every_time():
    target = WeightStore({"0.W": np.zeros(2, np.float32)}, make_optimizer("sgd", 0.1), 2)
    huge = np.array([3e38, 1.0], np.float32)
    target.push(key(1, 0), huge)
    for _ in range(2):
        with pytest.raises(TensorTaskError, match="gradient of 0.W, summed over all intervals, train 1: 1 of 2 values"):
            target.push(key(1, 1), huge)
    assert target.version == 0


def test_a_weight_that_is_not_finite_is_refused():
    target = WeightStore({"0.W": np.zeros(2, np.float32)}, make_optimizer("sgd", 1e10), 1)
    with pytest.raises(TensorTaskError, match="weight 0.W after train 1: 2 of 2 values"):
        target.push(key(), np.array([1e30, -1e30], np.float32))
    assert target.version == 0
    assert target.pull(0)["0.W"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.zeros((5, 3), np.float32), "float32 (5, 3)"),
        (np.zeros((5, 4), np.float64), "float64 (5, 4)"),
        (np.zeros((5, 4), np.int32), "int32 (5, 4)"),
        (np.zeros(20, np.float32), "float32 (20,)"),
    ],
)
def test_a_gradient_of_another_shape_or_dtype(array, found):
    target = store()
    with pytest.raises(BadFrame) as caught:
        target.push(key(), array)
    assert str(caught.value) == (
        f"gradient of 0.W, interval 0: {found}\n"
        "  why: this shard holds float32 (5, 4), and a gradient is cut like its weight\n"
        "  fix: start every role from the same job spec and the same version of Dorylus"
    )
    assert target.received(1) == 0


@pytest.mark.parametrize("change", [{"parameter": "2.W"}, {"interval": 3}, {"interval": -1}])
def test_an_unknown_parameter_or_interval(change):
    with pytest.raises(BadFrame) as caught:
        store().push(msgspec.structs.replace(key(), **change), gradient(1, 0, "0.W"))
    assert caught.value.why == "here are parameters 0.W, 1.W, 1.b and 3 intervals"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"pass_": passes.train(4)}, "the newest weights version is 2, so train 3 is open"),
        ({"pass_": passes.train(0)}, "the newest weights version is 2, so train 3 is open"),
        ({"pass_": passes.Pass(3, passes.PassKind.TRAIN, 1)}, "the newest weights version is 2, so train 3 is open"),
        ({"pass_": passes.evaluate(3)}, "only train passes have gradients"),
        ({"generation": 2}, "this weight store is of generation 1"),
        ({"stage": "Gather 0"}, "gradients of 0.W come from stage ∇ApplyVertex 0: one of two would be dropped"),
    ],
)
def test_a_gradient_that_cannot_be(change, why):
    wrong = msgspec.structs.replace(key(3), **change)
    with pytest.raises(ScheduleError) as caught:
        trained(2).push(wrong, gradient(3, 0, "0.W"))
    where = f"generation {wrong.generation}, stage {wrong.stage}, interval 0"
    assert str(caught.value) == f"a gradient of 0.W for {wrong.pass_} ({where})\n  why: {why}"


def test_a_model_without_parameters():
    with pytest.raises(ModelError, match="the model has no parameters"):
        WeightStore({}, make_optimizer("sgd", 0.1), 1)

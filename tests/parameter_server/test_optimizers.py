"""Optimizers against their closed formulas, written as sums over all gradients so far."""

import math

import numpy as np
import pytest

from common.errors import SpecError
from parameter_server.optimizers import make_optimizer

LR, DECAY = 0.05, 0.01
GOLDEN_ADAM = "e467fd3e46cd71be6de07a3f"


def gradients(num_steps=6):
    return np.random.default_rng(3).standard_normal((num_steps, 4, 3))


def walk(optimizer, weight, steps):
    state = optimizer.state(weight.shape, weight.dtype)
    weights = [weight]
    for number, gradient in enumerate(steps, start=1):
        moved, state = optimizer.step(weights[-1], gradient.astype(weight.dtype), state=state, step_number=number)
        weights.append(moved)
    return weights


def start():
    return np.random.default_rng(4).standard_normal((4, 3))


def adam_steps(effective):
    """-lr · m̂ / (√v̂ + ε) of each step from all gradients before it (Kingma & Ba, section 2)."""
    for t in range(1, len(effective) + 1):
        mean = sum(0.1 * 0.9 ** (t - i) * effective[i - 1] for i in range(1, t + 1)) / (1 - 0.9**t)
        square = sum(0.001 * 0.999 ** (t - i) * effective[i - 1] ** 2 for i in range(1, t + 1)) / (1 - 0.999**t)
        yield -LR * mean / (np.sqrt(square) + 1e-8)


def test_sgd():
    weights = walk(make_optimizer("sgd", LR), start(), gradients())
    np.testing.assert_allclose(weights[-1], start() - LR * gradients().sum(axis=0), rtol=1e-12)


def test_sgd_with_momentum():
    weights = walk(make_optimizer("sgd", LR, momentum=0.9), start(), gradients())
    g = gradients()
    moved = sum(0.9 ** (t - i) * g[i] for t in range(6) for i in range(t + 1))
    np.testing.assert_allclose(weights[-1], start() - LR * moved, rtol=1e-12)


def test_sgd_decay_is_added_to_the_gradient_and_goes_through_the_momentum():
    weights = walk(make_optimizer("sgd", LR, 0.9, DECAY), start(), gradients())
    buffer = 0.0
    for before, after, gradient in zip(weights, weights[1:], gradients(), strict=False):
        buffer = 0.9 * buffer + gradient + DECAY * before
        np.testing.assert_allclose(after - before, -LR * buffer, rtol=1e-9)


def test_adam():
    weights = walk(make_optimizer("adam", LR), start(), gradients())
    for before, after, moved in zip(weights, weights[1:], adam_steps(gradients()), strict=False):
        np.testing.assert_allclose(after - before, moved, rtol=1e-9)


def test_adam_decay_is_part_of_the_gradient():
    weights = walk(make_optimizer("adam", LR, weight_decay=DECAY), start(), gradients())
    effective = [g + DECAY * w for g, w in zip(gradients(), weights, strict=False)]
    for before, after, moved in zip(weights, weights[1:], adam_steps(effective), strict=False):
        np.testing.assert_allclose(after - before, moved, rtol=1e-9)


def test_adamw_decay_is_apart_from_the_gradient():
    weights = walk(make_optimizer("adamw", LR, weight_decay=DECAY), start(), gradients())
    for before, after, moved in zip(weights, weights[1:], adam_steps(gradients()), strict=False):
        np.testing.assert_allclose(after, before * (1 - LR * DECAY) + moved, rtol=1e-9)


def test_adams_first_step_is_lr_against_the_sign():
    weight = np.array([1.0, 1.0, 1.0])
    moved = walk(make_optimizer("adam", 0.1), weight, [np.array([3.0, -1e-3, 0.0])])[-1]
    np.testing.assert_allclose(moved, [0.9, 1.1, 1.0], rtol=1e-5)


def test_one_adam_step_to_the_last_bit():
    """Golden: the order of the roundings is part of the promise."""
    weight = np.array([0.5, -0.25, 1.0], np.float32)
    steps = [np.array([0.1, -2.0, 3e-5]), np.array([-0.3, 0.7, 1e-4])]
    moved = walk(make_optimizer("adam", 0.01, weight_decay=5e-4), weight, steps)[-1]
    assert moved.tobytes().hex() == GOLDEN_ADAM


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "momentum"), [("sgd", 0.0), ("sgd", 0.9), ("adam", 0.0), ("adamw", 0.0)])
class TestEveryOptimizer:
    def test_keeps_the_dtype(self, name, momentum, dtype):
        optimizer = make_optimizer(name, LR, momentum, DECAY)
        state = optimizer.state((4, 3), dtype)
        for number in (1, 2):
            weight, state = optimizer.step(
                start().astype(dtype), gradients()[0].astype(dtype), state=state, step_number=number
            )
            assert {weight.dtype, *(array.dtype for array in state.values())} == {np.dtype(dtype)}

    def test_changes_nothing_in_place(self, name, momentum, dtype):
        optimizer = make_optimizer(name, LR, momentum, DECAY)
        weight, gradient = start().astype(dtype), gradients()[0].astype(dtype)
        state = optimizer.state(weight.shape, dtype)
        arrays = [weight, gradient, *state.values()]
        before = [array.copy() for array in arrays]
        moved, new_state = optimizer.step(weight, gradient, state=state, step_number=1)
        for array, old in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, old)
            assert not any(np.shares_memory(array, new) for new in [moved, *new_state.values()])

    def test_rows_alone_are_the_same_bits(self, name, momentum, dtype):
        optimizer = make_optimizer(name, LR, momentum, DECAY)
        whole = walk(optimizer, start().astype(dtype), gradients())[-1]
        parts = [
            walk(optimizer, start()[rows].astype(dtype), gradients()[:, rows])[-1] for rows in (slice(1), slice(1, 4))
        ]
        assert np.concatenate(parts).tobytes() == whole.tobytes()

    def test_no_rows_are_fine(self, name, momentum, dtype):
        assert walk(make_optimizer(name, LR, momentum, DECAY), np.ones((0, 3), dtype), np.ones((2, 0, 3)))[-1].size == 0


@pytest.mark.parametrize("step", [1, 7, 1000, 100_000])
def test_bias_correction_after_many_steps(step):
    optimizer = make_optimizer("adam", 1.0)
    state = {"mean": np.array([1.0]), "square": np.array([1.0])}
    moved, _ = optimizer.step(np.array([0.0]), np.array([1.0]), state=state, step_number=step)
    expected = -1.0 / (1 - 0.9**step) / (1 / math.sqrt(1 - 0.999**step) + 1e-8)
    np.testing.assert_allclose(moved, [expected], rtol=1e-11)


@pytest.mark.parametrize(
    ("name", "fix"), [("adamm", "did you mean 'adam'?"), ("rprop", "set optimizer to one of these")]
)
def test_an_unknown_name(name, fix):
    with pytest.raises(SpecError) as caught:
        make_optimizer(name, LR)
    assert str(caught.value) == (
        f"optimizer = '{name}'\n  why: there is no such optimizer; there are adam, adamw, sgd\n  fix: {fix}"
    )


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_momentum_is_refused_where_it_would_be_ignored(name):
    with pytest.raises(SpecError) as caught:
        make_optimizer(name, LR, 0.9)
    assert str(caught.value) == (
        f"momentum = 0.9 with optimizer = '{name}'\n"
        f"  why: {name} keeps its own running mean of the gradients (beta1 = 0.9)\n"
        "  fix: remove momentum, or set optimizer = 'sgd'"
    )

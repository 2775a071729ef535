"""A tensor task is a function of its arguments: the same bits again, whatever else is computed between."""

import numpy as np
import pytest

from common import plugins
from common.saga.compute import TaskInputs, compute, step_gradients, step_parameters
from common.saga.cost import kept_width, tensor_width
from common.saga.layer import ModelOptions
from common.saga.loss import LossOptions
from common.saga.masks import Masks
from common.saga.program import Kind, Programs, derive

MODELS = ("gcn", "graphsage", "gin", "gat")
CLASSES = 3


def programs(name: str) -> Programs:
    options = ModelOptions(9, CLASSES, (8, 4), num_heads=2, dropout=0.5, attention_dropout=0.5)
    return derive(plugins.load("common.models", name).build(options))


def tasks(found: Programs):
    return [step for step in found.train.steps if step.kind is Kind.APPLY]


def inputs(found: Programs, step, num_rows: int, *, interval: int = 0, dtype=np.float32) -> TaskInputs:
    random = np.random.default_rng(0)
    rows = {name: random.normal(size=(num_rows, tensor_width(found.model, name))).astype(dtype) for name in step.reads}
    if step.has_loss:
        rows["labels"] = random.integers(-1, CLASSES, (num_rows, 1))
        rows["masks"] = random.integers(0, 8, (num_rows, 1)).astype(np.uint8)
    weights = {p.name: random.normal(size=p.shape).astype(dtype) for p in found.model.parameters()}
    masks = Masks(seed=0, interval=interval, epoch=1, training=True)
    return TaskInputs(rows, weights, masks, LossOptions((1.0, 2.0, 0.5), 20.0))


def same(a, b) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("name", MODELS)
def test_a_repeat_gives_the_same_bits(name):
    found = programs(name)
    for step in tasks(found):
        first = compute(found.model, step, inputs(found, step, 11))
        compute(found.model, step, inputs(found, step, 5, interval=1))
        again = compute(found.model, step, inputs(found, step, 11))
        assert same(first.rows, again.rows)
        assert same(first.gradients, again.gradients)
        assert first.sums == again.sums


@pytest.mark.parametrize("name", MODELS)
def test_what_a_task_gives(name):
    """The rows it declares, the gradients of its parts' weights, sums only where the loss is; all in its dtype."""
    found = programs(name)
    for step in tasks(found):
        for dtype in (np.float32, np.float64):
            given = inputs(found, step, 11, dtype=dtype)
            outputs = compute(found.model, step, given)
            assert tuple(outputs.rows) == step.writes
            assert sorted(outputs.gradients) == sorted(step_gradients(found.model, step))
            for tensor, rows in outputs.rows.items():
                assert (rows.shape, rows.dtype) == ((11, tensor_width(found.model, tensor)), dtype)
            for weight, gradient in outputs.gradients.items():
                assert (gradient.shape, gradient.dtype) == (given.weights[weight].shape, dtype)
            assert bool(outputs.sums) is step.has_loss


@pytest.mark.parametrize("name", MODELS)
def test_a_task_reads_the_weights_it_declares_and_no_others(name):
    found = programs(name)
    for step in tasks(found):
        given = inputs(found, step, 11)
        named = {weight: given.weights[weight] for weight in step_parameters(found.model, step)}
        fewer = TaskInputs(given.rows, named, Masks(seed=0, interval=0, epoch=1, training=True), given.loss)
        assert same(compute(found.model, step, given).rows, compute(found.model, step, fewer).rows)


@pytest.mark.parametrize("name", MODELS)
def test_every_weight_gets_its_gradient_from_one_task(name):
    found = programs(name)
    gradients = [weight for step in tasks(found) for weight in step_gradients(found.model, step)]
    assert sorted(gradients) == sorted(p.name for p in found.model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_an_empty_interval(name):
    """0 rows: it gives 0 rows, gradients of 0 and sums of 0, for every interval must answer."""
    found = programs(name)
    for step in tasks(found):
        outputs = compute(found.model, step, inputs(found, step, 0))
        assert all(rows.shape == (0, tensor_width(found.model, tensor)) for tensor, rows in outputs.rows.items())
        assert not any(gradient.any() for gradient in outputs.gradients.values())
        assert not any(outputs.sums.values())


@pytest.mark.parametrize("name", MODELS)
def test_inputs_are_not_written(name):
    found = programs(name)
    for step in tasks(found):
        given = inputs(found, step, 11)
        for array in (*given.rows.values(), *given.weights.values()):
            array.flags.writeable = False
        compute(found.model, step, given)


@pytest.mark.parametrize("name", MODELS)
def test_a_backward_task_sees_the_masks_of_its_forward_task(name):
    """The task of another interval or epoch drops other values."""
    found = programs(name)
    (step,) = [step for step in tasks(found) if str(step) == "∇ApplyVertex1+0"]
    first = compute(found.model, step, inputs(found, step, 11)).gradients
    other = compute(found.model, step, inputs(found, step, 11, interval=1)).gradients
    assert not any(np.array_equal(first[weight], other[weight]) for weight in first if "weight" in weight)


@pytest.mark.parametrize("name", MODELS)
def test_evaluation_drops_nothing(name):
    found = programs(name)
    step = next(step for step in found.evaluate.steps if str(step) == "ApplyVertex0+1")
    given = inputs(found, step, 11)
    evaluated = TaskInputs(given.rows, given.weights, Masks(seed=0, interval=0, epoch=1, training=False), given.loss)
    other = TaskInputs(given.rows, given.weights, Masks(seed=9, interval=3, epoch=7, training=False), given.loss)
    plain = compute(found.model, step, evaluated).rows
    assert same(plain, compute(found.model, step, other).rows)
    assert not same(plain, compute(found.model, step, given).rows)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_kept_for_the_recomputing_step_changes_no_bit(name):
    """A table of rows by name, so that a step that recomputes another reads what that one read."""
    found, kept = programs(name), {}
    random = np.random.default_rng(0)
    names = {tensor for step in tasks(found) for tensor in step.reads} - {"labels", "masks"}
    rows = {t: random.normal(size=(11, tensor_width(found.model, t))).astype(np.float32) for t in sorted(names)}
    weights, was_kept = inputs(found, tasks(found)[0], 11).weights, 0
    for step in tasks(found):
        plain = inputs(found, step, 11)
        given = {t: rows.get(t, plain.rows[t]) for t in step.reads}
        masks = [Masks(seed=0, interval=0, epoch=1, training=True) for _ in range(2)]
        alone = compute(found.model, step, TaskInputs(given, weights, masks[0], plain.loss))
        together = compute(found.model, step, TaskInputs(given, weights, masks[1], plain.loss, kept))
        was_kept = max(was_kept, sum(array.shape[1] for array in kept.values()))
        assert same(alone.rows, together.rows)
        assert same(alone.gradients, together.gradients)
    assert was_kept == kept_width(found.model, found.train)
    assert was_kept or name == "gat", "whose one map's output is sent, and so is in the store already"
    assert not kept, "the step that recomputes takes it"

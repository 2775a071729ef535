"""Every vjp is the derivative of its forward: central differences in float64."""

import numpy as np
import pytest

from common.models.gat import ProjectWithScores
from common.models.gin import GatheredAndSelf, SumThenLinear
from common.models.graphsage import NeighbourAndSelf
from common.saga.masks import Masks
from common.saga.tensor_functions import Activation, Bias, DropInputs, Dropout, Identity, Linear

ROWS = 7
MASKS = Masks(seed=3, interval=0, epoch=1, training=True)
STEP = 1e-6

FUNCTIONS = {
    "linear": (Linear(3), (5,)),
    "identity": (Identity(), (5,)),
    "bias": (Bias(), (5,)),
    "relu": (Activation("relu"), (5,)),
    "elu": (Activation("elu"), (5,)),
    "tanh": (Activation("tanh"), (5,)),
    "dropout": (Dropout(0.5, 1), (5,)),
    "dropped linear": (DropInputs(Linear(3), 0.5), (5,)),
    "sage": (NeighbourAndSelf(3), (4, 4)),
    "sage moved": (NeighbourAndSelf(3, neighbour_moved=True), (3, 5)),
    "sage dropped": (DropInputs(NeighbourAndSelf(3), 0.5), (4, 4)),
    "gin sum": (GatheredAndSelf(), (4, 4)),
    "gin": (SumThenLinear(3), (4, 4)),
    "gin dropped": (DropInputs(SumThenLinear(3), 0.5), (4, 4)),
    "gat 1x1": (ProjectWithScores(1, 1), (4,)),
    "gat 2x3": (ProjectWithScores(2, 3), (4,)),
}


@pytest.fixture(params=FUNCTIONS.values(), ids=FUNCTIONS.keys())
def case(request):
    """(function, its rows, its weights, a gradient of its output)."""
    function, widths = request.param
    random = np.random.default_rng(0)
    rows = [random.normal(size=(ROWS, width)) for width in widths]
    weights = {p.name: random.normal(size=p.shape) for p in function.parameters(*widths)}
    return function, rows, weights, random.normal(size=(ROWS, function.width(*widths)))


def difference(function, rows, weights, grad, *, of: np.ndarray) -> np.ndarray:
    """d sum(grad · forward) / d of, one entry after the other; `of` is one of rows or weights, moved in place."""
    slopes = np.empty_like(of)
    for place in np.ndindex(of.shape):
        before, ends = of[place], []
        for sign in (1, -1):
            of[place] = before + sign * STEP
            ends.append(float((grad * function.forward(weights, MASKS, *rows)).sum()))
        of[place] = before
        slopes[place] = (ends[0] - ends[1]) / (2 * STEP)
    return slopes


def test_vjp_is_the_derivative(case):
    function, rows, weights, grad = case
    row_grads, grads = function.vjp(weights, MASKS, grad, *rows, want_rows=True)
    assert len(row_grads) == len(rows)
    assert grads.keys() == weights.keys()
    for x, found in zip(rows, row_grads, strict=True):
        assert np.allclose(found, difference(function, rows, weights, grad, of=x), rtol=0, atol=1e-8)
    for name, found in grads.items():
        assert found.shape == weights[name].shape
        assert np.allclose(found, difference(function, rows, weights, grad, of=weights[name]), rtol=0, atol=1e-8)


def test_without_rows_the_weights_get_the_same_gradients(case):
    function, rows, weights, grad = case
    _, with_rows = function.vjp(weights, MASKS, grad, *rows, want_rows=True)
    _, without = function.vjp(weights, MASKS, grad, *rows, want_rows=False)
    assert with_rows.keys() == without.keys()
    assert all(np.array_equal(with_rows[name], without[name]) for name in without)


def test_nothing_given_is_changed(case):
    function, rows, weights, grad = case
    given = [*rows, *weights.values(), grad]
    before = [x.copy() for x in given]
    function.forward(weights, MASKS, *rows)
    function.vjp(weights, MASKS, grad, *rows, want_rows=True)
    assert all(np.array_equal(x, y) for x, y in zip(given, before, strict=True))


def test_float32_stays_float32(case):
    function, rows, weights, grad = case
    rows32, grad32 = [x.astype(np.float32) for x in rows], grad.astype(np.float32)
    weights32 = {name: w.astype(np.float32) for name, w in weights.items()}
    row_grads, grads = function.vjp(weights32, MASKS, grad32, *rows32, want_rows=True)
    given = [function.forward(weights32, MASKS, *rows32), *row_grads, *grads.values()]
    assert {x.dtype for x in given} == {np.dtype(np.float32)}


def test_an_empty_interval(case):
    """0 rows in, 0 rows out, and weights whose gradient is 0."""
    function, rows, weights, grad = case
    none = [x[:0] for x in rows]
    assert function.forward(weights, MASKS, *none).shape == (0, grad.shape[1])
    row_grads, grads = function.vjp(weights, MASKS, grad[:0], *none, want_rows=True)
    assert [x.shape for x in row_grads] == [x.shape for x in none]
    assert all(grads[name].shape == weights[name].shape and not grads[name].any() for name in weights)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("relu", [0, 0, 0, 2]), ("elu", [np.exp(-2) - 1, np.exp(-1) - 1, 0, 2]), ("tanh", np.tanh([-2, -1, 0, 2]))],
)
def test_activations(kind, expected):
    x = np.array([[-2.0, -1.0, 0.0, 2.0]])
    assert np.allclose(Activation(kind).forward({}, MASKS, x), [expected], rtol=1e-15)


@pytest.mark.parametrize("kind", ["relu", "elu", "tanh"])
def test_activations_of_large_values_are_finite(kind):
    x = np.array([[-1e30, -200, 200, 1e30]], np.float32)
    slope = Activation(kind).vjp({}, MASKS, np.ones_like(x), x, want_rows=True)[0][0]
    assert np.isfinite(Activation(kind).forward({}, MASKS, x)).all()
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("name", ["linear", "sage", "gin"])
def test_a_commuted_function_is_the_same_map(name):
    """forward(sum of rows) = behind(sum of ahead(rows)): what rule 7 relies on."""
    function, widths = FUNCTIONS[name]
    random = np.random.default_rng(1)
    neighbours, own = random.normal(size=(3, ROWS, widths[0])), random.normal(size=(ROWS, widths[0]))
    weights = {p.name: random.normal(size=p.shape) for p in function.parameters(*widths)}
    direct = function.forward(weights, MASKS, *(neighbours.sum(axis=0), own)[: len(widths)])
    ahead, behind, reads = function.commuted()
    named = {
        "gathered": sum(ahead.forward(weights, MASKS, x) for x in neighbours),
        "self": own,
        "projected": ahead.forward(weights, MASKS, own),
    }
    assert np.allclose(behind.forward(weights, MASKS, *(named[read] for read in reads)), direct, rtol=1e-13)
    assert {p.name for f, w in ((ahead, widths[:1]), (behind, [named[r].shape[1] for r in reads]))
            for p in f.parameters(*w)} == weights.keys()  # fmt: skip


def test_sage_moves_the_neighbour_matrix_only():
    ahead, behind, reads = NeighbourAndSelf(3).commuted()
    assert ahead == Linear(3, "weight_neighbour")
    assert [p.name for p in behind.parameters(3, 5)] == ["weight_self"]
    assert reads == ("gathered", "self")


def test_gin_moves_both_terms():
    ahead, behind, reads = SumThenLinear(3).commuted()
    assert ahead == Linear(3, "weight1")
    assert [p.name for p in behind.parameters(3, 3)] == ["eps"]
    assert reads == ("gathered", "projected")

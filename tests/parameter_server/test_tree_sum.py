"""The sum's bits depend on the leaves alone, never on the order in which they come."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import ScheduleError
from parameter_server.tree_sum import TreeSum, sum_by_name


def gradients(num_leaves, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    exponents = rng.integers(-20, 20, (num_leaves, 4, 3))
    return [np.ldexp(rng.standard_normal((4, 3)), e).astype(dtype) for e in exponents]


def total(leaves, order):
    tree = TreeSum(len(leaves))
    for leaf in order:
        tree.add(leaf, leaves[leaf])
    return tree.total()


def by_recursion(leaves):
    """The definition: split at the largest power of two below the number of leaves."""
    if len(leaves) == 1:
        return leaves[0].astype(np.float64)
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return by_recursion(leaves[:half]) + by_recursion(leaves[half:])


@pytest.mark.parametrize("num_leaves", [1, 2, 3, 5, 6, 7, 8, 11, 40])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_tree_is_the_one_described(num_leaves, dtype):
    leaves = gradients(num_leaves, dtype)
    result = total(leaves, range(num_leaves))
    assert result.dtype == np.float64
    assert result.tobytes() == by_recursion(leaves).tobytes()


@settings(deadline=None)
@given(st.data())
def test_any_order_with_repeats_gives_the_same_bits(data):
    num_leaves = data.draw(st.integers(1, 20))
    leaves = gradients(num_leaves, data.draw(st.sampled_from([np.float32, np.float64])), num_leaves)
    order = data.draw(st.permutations(range(num_leaves)))
    repeats = data.draw(st.lists(st.integers(0, num_leaves - 1), max_size=10))
    tree = TreeSum(num_leaves)
    seen = set()
    for leaf in itertools.chain.from_iterable(itertools.zip_longest(order, repeats)):
        if leaf is not None:
            assert tree.add(leaf, leaves[leaf]) is (leaf not in seen)
            seen.add(leaf)
    assert tree.complete
    assert tree.total().tobytes() == total(leaves, range(num_leaves)).tobytes()


@pytest.mark.parametrize("num_leaves", range(1, 7))
def test_every_order_of_few_leaves(num_leaves):
    leaves = gradients(num_leaves)
    assert len({total(leaves, order).tobytes() for order in itertools.permutations(range(num_leaves))}) == 1


def test_regrouping_changes_the_bits():
    """The tests above can fail: adding the same leaves from left to right gives another sum."""
    leaves = gradients(12, np.float64)
    left_fold = functools.reduce(np.add, leaves)
    np.testing.assert_allclose(left_fold, total(leaves, range(12)), rtol=1e-6)
    assert left_fold.tobytes() != total(leaves, range(12)).tobytes()


def test_arrival_order_would_change_the_bits():
    leaves = gradients(12, np.float64)
    folds = {functools.reduce(np.add, [leaves[i] for i in order]).tobytes() for order in (range(12), range(11, -1, -1))}
    assert len(folds) == 2


def test_float32_leaves_are_summed_in_float64():
    leaves = [np.array([1.0], np.float32), np.array([2.0**-40], np.float32)]
    assert total(leaves, [1, 0])[0] == 1.0 + 2.0**-40


def test_a_repeat_changes_nothing():
    tree = TreeSum(2)
    assert tree.add(1, np.array([1.0]))
    assert not tree.add(1, np.array([7.0]))
    assert (tree.num_added, 1 in tree, 0 in tree) == (1, True, False)
    assert tree.add(0, np.array([2.0]))
    assert tree.total().tolist() == [3.0]


def test_the_caller_may_use_its_buffer_again():
    buffer, tree = np.array([1.0]), TreeSum(2)
    tree.add(0, buffer)
    buffer[:] = 100.0
    tree.add(1, buffer)
    assert tree.total().tolist() == [101.0]
    assert buffer.tolist() == [100.0]


def test_the_total_belongs_to_the_caller():
    tree = TreeSum(1)
    tree.add(0, np.array([1.0]))
    tree.total()[:] = 5.0
    assert tree.total().tolist() == [1.0]


def test_leaves_in_order_keep_few_arrays_alive():
    tree, one = TreeSum(1000), np.ones(8)
    largest = 0
    for leaf in range(1000):
        tree.add(leaf, one)
        largest = max(largest, tree.held_bytes)
    assert largest <= 10 * one.nbytes
    assert tree.held_bytes == one.nbytes


def test_numbers_and_what_is_not_finite():
    tree = TreeSum(3)
    for leaf, value in enumerate([1.0, math.inf, -math.inf]):
        tree.add(leaf, value)
    assert tree.total().shape == ()
    assert math.isnan(tree.total())


@pytest.mark.parametrize(
    ("leaf", "value", "what"),
    [
        (2, 1.0, "leaf 2 of a sum over 2 leaves"),
        (-1, 1.0, "leaf -1 of a sum over 2 leaves"),
        (1, np.ones((1, 3)), "leaf 1 has shape (1, 3), the leaves before it (3,)"),
        (1, np.ones(3, np.int64), "leaf 1 is int64"),
    ],
)
def test_a_leaf_that_does_not_fit_is_refused(leaf, value, what):
    tree = TreeSum(2)
    tree.add(0, np.ones(3))
    with pytest.raises(ScheduleError) as caught:
        tree.add(leaf, value)
    assert caught.value.what == what
    assert tree.num_added == 1


def test_no_total_before_the_last_leaf():
    tree = TreeSum(2)
    tree.add(0, 1.0)
    with pytest.raises(ScheduleError, match="asked for with 1 of 2 leaves"):
        tree.total()
    with pytest.raises(ScheduleError, match="a sum over 0 leaves"):
        TreeSum(0)


@given(st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=40))
def test_sum_by_name_is_the_same_tree(values):
    sums = sum_by_name([{"loss": value, "count": 1.0} for value in values])
    assert sums["count"] == len(values)
    assert sums["loss"] == total([np.array(value) for value in values], range(len(values)))


def test_a_name_that_a_leaf_lacks_adds_nothing():
    assert sum_by_name([{"b": 1.0}, {}, {"b": 2.0, "a": 3.0}]) == {"a": 3.0, "b": 3.0}
    assert list(sum_by_name([{"b": 1.0, "a": 2.0}])) == ["a", "b"]
    assert sum_by_name([]) == {}

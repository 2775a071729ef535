"""Rows over parameter servers: a partition for every number of rows and shards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ModelError
from common.sharding import join, shard, shard_rows


@given(st.integers(0, 200), st.integers(1, 12))
def test_shards_are_contiguous_balanced_and_whole(num_rows, num_shards):
    parts = [shard_rows(num_rows, num_shards, k) for k in range(num_shards)]
    assert [row for part in parts for row in range(part.start, part.stop)] == list(range(num_rows))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


def test_seven_rows_on_three_shards():
    assert [shard_rows(7, 3, k) for k in range(3)] == [slice(0, 2), slice(2, 4), slice(4, 7)]


@pytest.mark.parametrize("num_shards", [1, 2, 3, 7])
def test_join_undoes_shard(num_shards):
    weights = {"W": np.arange(12, dtype=np.float32).reshape(4, 3), "b": np.arange(5.0), "one": np.ones((1, 2))}
    joined = join([shard(weights, num_shards, k) for k in range(num_shards)])
    assert list(joined) == list(weights)
    for name in weights:
        assert joined[name].dtype == weights[name].dtype
        np.testing.assert_array_equal(joined[name], weights[name])


def test_a_shard_may_be_empty():
    part = shard({"W": np.ones((1, 3), np.float32)}, 2, 0)
    assert part["W"].shape == (0, 3)


@pytest.mark.parametrize(("rows", "shards", "number"), [(3, 0, 0), (3, 2, 2), (3, 2, -1), (-1, 2, 0)])
def test_a_shard_that_is_not_there(rows, shards, number):
    with pytest.raises(ValueError, match=f"shard {number} of {shards} over {rows} rows"):
        shard_rows(rows, shards, number)


def test_a_scalar_cannot_be_sharded():
    with pytest.raises(ModelError) as caught:
        shard({"eps": np.array(1.0)}, 2, 0)
    assert str(caught.value) == (
        "parameter eps has shape ()\n"
        "  why: parameters are split by rows over the parameter servers, and a scalar has none\n"
        "  fix: declare it with shape (1,)"
    )


def test_join_wants_the_same_names_and_at_least_one_shard():
    with pytest.raises(ValueError, match=r"shard 1 holds \['b'\], shard 0 holds \['W'\]"):
        join([{"W": np.ones(1)}, {"b": np.ones(1)}])
    with pytest.raises(ValueError, match="no shard to join"):
        join([])

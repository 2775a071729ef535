"""The kernel drops what the masks of the saga drop, to the last bit."""

import numpy as np
import pytest

from common.saga.masks import Masks
from graph_server.graph.dropout_kernel import QuickMasks

SHAPES = [(0, 4), (4, 0), (1, 1), (3, 11), (64, 32), (65, 32), (300, 77)]


def both(x, rate, layer=2, **where):
    given = {"seed": -3, "interval": 5, "epoch": 7, "training": True, **where}
    return Masks(**given).drop(x, rate, layer), QuickMasks(**given).drop(x, rate, layer)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_bits(shape, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    for rate in (1 / 256, 0.5, 0.6, 255 / 256):
        slow, quick = both(x, rate)
        assert (slow.tobytes(), slow.dtype, slow.shape) == (quick.tobytes(), quick.dtype, quick.shape)


def test_the_stream_is_of_its_seed_layer_interval_and_epoch():
    x = np.ones((40, 40), np.float32)
    elsewhere = [{"seed": 2**40}, {"interval": 4095}, {"epoch": 2**31}, {"layer": 1}]
    found = [both(x, 0.5, **where) for where in ({}, *elsewhere)]
    assert all(np.array_equal(slow, quick) for slow, quick in found)
    assert len({quick.tobytes() for _, quick in found}) == len(found)


def test_signs_of_zeros_and_what_is_not_finite():
    x = np.tile(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -1e-45, 1.0], np.float32), (50, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        slow, quick = both(x, 0.5)
    assert np.array_equal(np.isnan(slow), np.isnan(quick))
    known = ~np.isnan(slow)
    assert slow[known].tobytes() == quick[known].tobytes()


def test_rows_that_do_not_lie_together():
    x = np.random.default_rng(0).standard_normal((40, 60)).astype(np.float32)
    for rows in (x.T, x[::2], x[:, 3:9]):
        slow, quick = both(rows, 0.5)
        assert np.array_equal(slow, quick)


def test_outside_training_nothing_is_dropped():
    x = np.ones((3, 3), np.float32)
    assert both(x, 0.5, training=False)[1] is x
    assert both(x, 0.001)[1] is x

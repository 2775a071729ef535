"""Arrays that begin at a cache line."""

import numpy as np
import pytest

from graph_server.graph.aligned import CACHE_LINE, zeros


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint16, np.int64])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (7, 41), (100_000, 16)])
def test_they_are_zero_writable_and_begin_at_a_line(shape, dtype):
    array = zeros(shape, dtype)
    assert (array.shape, array.dtype, array.any()) == (shape, dtype, False)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.size == 0 or array.ctypes.data % CACHE_LINE == 0

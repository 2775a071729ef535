"""The factors of a WeightedSum, split over the two ends of an edge: what a vertex's row is multiplied by.

With d = in-degree with multiplicity, or the sum of the in-edges' weights; self loops included where the Gather adds
them, with weight 1; d = 0 has factor 0.
"""

from typing import Any, NamedTuple

import numpy as np

from common.saga.arrays import Array
from common.saga.gathers import Gather, WeightedSum


class Factors(NamedTuple):
    """[rows, 1] each. A Gather multiplies rows by `pre` when they are published and sums by `post`; backward swaps."""

    pre: Array
    post: Array


def factors(gather: Gather, in_degree: Array, add_loop: Array, dtype: Any) -> Factors:
    degree = in_degree + add_loop
    ones = np.ones(len(degree), dtype)
    if not isinstance(gather, WeightedSum) or gather.norm == "sum":
        return Factors(ones[:, None], ones[:, None])
    divisor = np.where(degree > 0, degree, 1).astype(np.float64)
    # Root and quotient are rounded exactly on every CPU, a power is not.
    inverse = 1.0 / (np.sqrt(divisor) if gather.norm == "sym" else divisor)
    scaled = np.where(degree > 0, inverse, 0.0).astype(dtype)
    return Factors(scaled[:, None] if gather.norm == "sym" else ones[:, None], scaled[:, None])

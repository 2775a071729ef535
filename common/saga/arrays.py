"""The array types of the saga: rows of an interval and weights are float32, or float64 in gradient checks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Rows = Mapping[str, Array]
Weights = Mapping[str, Array]

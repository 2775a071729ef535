"""A column whose length nobody knows before the file ends.

Room for twice as much costs nothing: the system gives pages when they are first written. So of several columns that
grow one after the other, one at most is ever held twice.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

_LEAST = 1 << 10


class GrowingColumn:
    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._values: np.ndarray[Any, Any] = np.empty(_LEAST, dtype)
        self._length = 0

    def add(self, values: np.ndarray[Any, Any]) -> None:
        end = self._length + len(values)
        if end > len(self._values):
            # Not by `resize`: it writes zeros, and then the pages are there.
            wider: np.ndarray[Any, Any] = np.empty(2 * end, self._values.dtype)
            wider[: self._length] = self._values[: self._length]
            self._values = wider
        self._values[self._length : end] = values
        self._length = end

    def taken(self) -> np.ndarray[Any, Any]:
        """What was added, as one array; nothing may be added any more."""
        self._values.resize(self._length, refcheck=False)
        return self._values

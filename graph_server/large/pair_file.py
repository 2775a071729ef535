"""Edges on disk as they come: pairs of int64, appended and read again in batches."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
BATCH = 1 << 20
"""Edges held at once."""


class PairFile:
    """`with` it is written, then read as often as need be."""

    def __init__(self, path: Path) -> None:
        self._path, self.num_pairs = path, 0
        self._file = path.open("wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def add(self, sources: Ints, targets: Ints) -> None:
        np.stack([sources, targets], axis=1).astype(np.int64, copy=False).tofile(self._file)
        self.num_pairs += len(sources)

    def batches(self) -> Iterator[tuple[Ints, Ints]]:
        with self._path.open("rb") as file:
            for _ in range(0, self.num_pairs, BATCH):
                pairs = np.fromfile(file, np.int64, 2 * BATCH).reshape(-1, 2)
                yield pairs[:, 0], pairs[:, 1]

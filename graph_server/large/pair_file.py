"""Edges on disk as they come: pairs of int64, perhaps a weight each, appended and read again in batches."""

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from graph_server.graph.csr import Weights

Ints = npt.NDArray[np.int64]
BATCH = 1 << 20
"""Edges held at once."""


class EdgeBatch(NamedTuple):
    """sources, targets [n] in rows; weights float32 [n], or None where every edge counts the same."""

    sources: Ints
    targets: Ints
    weights: Weights | None = None


class PairFile:
    """`with` it is written, then read as often as need be. Weights stand in a file of their own."""

    def __init__(self, path: Path, *, weighted: bool = False) -> None:
        self._path, self._weights_path, self.num_pairs = path, path.with_name(f"{path.name}-weights"), 0
        self._file = path.open("wb")
        self._weights_file = self._weights_path.open("wb") if weighted else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        if self._weights_file is not None:
            self._weights_file.close()

    def add(self, sources: Ints, targets: Ints, weights: Weights | None = None) -> None:
        np.stack([sources, targets], axis=1).astype(np.int64, copy=False).tofile(self._file)
        if self._weights_file is not None:
            assert weights is not None, "every edge has a weight, or none has"
            weights.tofile(self._weights_file)
        self.num_pairs += len(sources)

    def batches(self) -> Iterator[EdgeBatch]:
        with self._path.open("rb") as file:
            for start in range(0, self.num_pairs, BATCH):
                pairs = np.fromfile(file, np.int64, 2 * BATCH).reshape(-1, 2)
                yield EdgeBatch(pairs[:, 0], pairs[:, 1], self._weights_of(start))

    def _weights_of(self, start: int) -> Weights | None:
        if self._weights_file is None:
            return None
        return np.fromfile(self._weights_path, np.float32, BATCH, offset=4 * start)

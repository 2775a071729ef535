"""What a warm container keeps from lease to lease: constants of one job, bounded, and the last weights it fetched."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from common.saga.arrays import Array

Constant = tuple[int, str]
"""(interval, tensor)."""


@dataclass
class WarmContainer:
    """`limit` in bytes. Dropped whole when another job comes."""

    limit: int
    job: str = ""
    weights_version: int = -1
    weights: dict[str, Array] = field(default_factory=dict)
    _constants: dict[Constant, Array] = field(default_factory=dict)
    _evicted: list[Constant] = field(default_factory=list)

    def enter(self, job: str) -> None:
        if job != self.job:
            self.job, self.weights_version, self.weights = job, -1, {}
            self._constants, self._evicted = {}, []

    def held(self) -> tuple[Constant, ...]:
        return tuple(self._constants)

    def keep(self, key: Constant, rows: Array) -> None:
        """The oldest give way. A constant above the limit alone is not kept."""
        self._constants[key] = rows
        while sum(array.nbytes for array in self._constants.values()) > self.limit:
            oldest = next(iter(self._constants))
            del self._constants[oldest]
            self._evicted.append(oldest)

    def get(self, interval: int, names: Iterable[str]) -> dict[str, Array]:
        return {name: self._constants[interval, name] for name in names if (interval, name) in self._constants}

    def take_evicted(self) -> tuple[Constant, ...]:
        """Those since the last call: the graph server has to know."""
        evicted, self._evicted = tuple(self._evicted), []
        return evicted

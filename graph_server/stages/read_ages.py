"""How old the rows were that Gathers read: "stale by at most s" is counted, not hoped for."""

from collections import Counter

import numpy as np

from graph_server.stages.gather import Lags


class ReadAges:
    """A read is one interval's block as one kernel call met it. Staleness counts from the last epoch's rows on."""

    def __init__(self) -> None:
        self._reads: Counter[int] = Counter()

    def add(self, lags: Lags | None) -> None:
        """[n] by how many epochs each block was older than the pass that read it."""
        if lags is None or not len(lags):
            return
        if (lags == lags[0]).all():  # in pipe mode always, and a search of all values would take far longer
            self._reads[int(lags[0])] += len(lags)
            return
        values, counts = np.unique(lags, return_counts=True)
        self._reads.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    @property
    def counts(self) -> dict[str, int]:
        """reads_exact: of the same epoch; reads_ahead: of a later one; stale_k: of epoch e - 1 - k."""
        named: Counter[str] = Counter()
        for lag, count in self._reads.items():
            named["reads_exact" if lag == 0 else "reads_ahead" if lag < 0 else f"stale_{lag - 1}"] += count
        return dict(named)

"""The partition book: who owns what. Every graph server holds the same one.

Ids are relabelled ids, intervals are runs of them, and an interval has one owner.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graph_server.graph.csr import Indices, Ints


@dataclass(frozen=True, eq=False)
class PartitionBook:
    """bounds  [I + 1] int64 as in the cut; owners  [I] int32, each below num_graph_servers"""

    bounds: Ints
    owners: npt.NDArray[np.int32]
    num_graph_servers: int

    @property
    def num_nodes(self) -> int:
        return int(self.bounds[-1])

    @property
    def num_intervals(self) -> int:
        return len(self.owners)

    def interval_of(self, ids: Indices) -> Ints:
        """The interval of each id. An empty interval holds no id: of equal bounds the last one counts."""
        return np.searchsorted(self.bounds, ids, side="right") - 1

    def owner_of(self, ids: Indices) -> npt.NDArray[np.int32]:
        """The graph server that owns each id."""
        return self.owners[self.interval_of(ids)]

    def own_intervals(self, server: int) -> tuple[int, ...]:
        """Ascending; may be none."""
        return tuple(np.flatnonzero(self.owners == server).tolist())

    def rows(self, interval: int) -> range:
        """The relabelled ids of an interval."""
        return range(int(self.bounds[interval]), int(self.bounds[interval + 1]))

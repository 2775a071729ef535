"""How many leases may be lost before the job ends? So many within five minutes. Pure: `now` is an argument."""

from collections import deque

from common.errors import ClusterError

LOSS_WINDOW_SECONDS = 300.0


class LossLimit:
    def __init__(self, most: int) -> None:
        self._most = most
        self._losses: deque[float] = deque()

    def lost(self, now: float) -> ClusterError | None:
        """One more is lost; the error if it is one too many."""
        self._losses.append(now)
        while self._losses[0] < now - LOSS_WINDOW_SECONDS:
            self._losses.popleft()
        if len(self._losses) <= self._most:
            return None
        return ClusterError(
            f"{len(self._losses)} leases were lost within {LOSS_WINDOW_SECONDS:.0f} s",
            why="functions are killed, time out or cannot reach the graph server, so nothing gets done",
            fix="look at the functions' logs; raise backend.memory_mb, or use backend local_cpu",
        )

"""What becomes of a job that lost a role: another generation, perhaps with fewer graph servers, or the end. Pure.

A loss is bad luck, and a new start may have better. An error that the job itself makes (a task that crashes, weights
that are no longer finite, a spec, a disk that is full) would come again, so it ends the job at once.
"""

import re
from dataclasses import dataclass

from common.errors import DeadlineExceeded, PeerClosed, PeerLost

ECHOES = (PeerClosed, DeadlineExceeded)
"""How a role speaks of another one that is gone."""
LOSSES = (PeerLost, *ECHOES)


def is_loss(error: BaseException) -> bool:
    return isinstance(error, LOSSES)


def is_echo(error: BaseException) -> bool:
    return isinstance(error, ECHOES)


@dataclass(frozen=True)
class Origin:
    """Where a generation starts: after `epoch`, from the checkpoint of this URL; None: from the beginning."""

    generation: int = 1
    epoch: int = 0
    version: int = 0
    checkpoint: str | None = None


@dataclass(frozen=True)
class Loss:
    """`epoch`: the last one that had ended, 0 if none had."""

    generation: int
    epoch: int
    error: PeerLost | PeerClosed | DeadlineExceeded

    def __str__(self) -> str:
        return f"generation {self.generation}, after epoch {self.epoch}: {self.error.what}"


class Generations:
    """`generation` and `num_graph_servers` are those to start now."""

    def __init__(self, *, max_restarts: int, num_graph_servers: int, first: int = 1) -> None:
        self._max_restarts, self._first = max_restarts, first
        self.generation, self.num_graph_servers = first, num_graph_servers
        self._losses: list[Loss] = []
        self._unlucky: str | None = None

    @property
    def restarts(self) -> int:
        return self.generation - self._first

    def lost(self, error: BaseException, epoch: int) -> Loss:
        """Go on to the next generation.

        Raises the error itself if another start would not mend it or none is allowed, and PeerLost with the whole
        story if there were too many.
        """
        if not isinstance(error, LOSSES) or self._max_restarts == 0:
            raise error
        self._losses.append(Loss(self.generation, epoch, error))
        if self.restarts == self._max_restarts:
            raise self._too_many() from error
        self._drop_who_is_lost_again(error)
        self.generation += 1
        return self._losses[-1]

    def _drop_who_is_lost_again(self, error: BaseException) -> None:
        """The same graph server twice in a row: its machine may be the cause, so the job goes on without it."""
        found = re.search(r"\bgraph\d+\b", getattr(error, "what", ""))
        lost = found[0] if found else None
        again = lost is not None and lost == self._unlucky
        if again and self.num_graph_servers > 1:
            self.num_graph_servers -= 1
        self._unlucky = None if again else lost

    def _too_many(self) -> PeerLost:
        last, times = self._losses[-1], len(self._losses)
        return PeerLost(
            f"{last.error.what}; the job was started {times} times",
            why="; ".join(map(str, self._losses)),
            fix="find out what ends these processes (memory?), then resume the run, or raise cluster.max_restarts",
        )

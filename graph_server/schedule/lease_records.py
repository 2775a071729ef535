"""What the lease book remembers of a lease and of a task. Pure data, with what follows from it."""

import enum
from dataclasses import dataclass, field

from graph_server.schedule.lease_events import TaskKey

SPREAD = 0.25
GOLDEN = 0.618034
"""Multiples of it, modulo 1, are spread evenly, however many there are."""


def share_of_time(number: int, phase: float) -> float:
    """How much of the time that a lease may live it does: from 1 - SPREAD to 1, for each another. Ending together, they
    would leave everything waiting, and start again in each other's containers, without the constants."""
    return 1 - SPREAD * ((number * GOLDEN + phase) % 1)


class Phase(enum.Enum):
    OPENING = "invoked, not heard of"
    LIVE = "has said hello"
    ENDING = "gets no more tasks"


@dataclass
class HeldTask:
    """A task in a lease's hands."""

    age_since: float | None = None
    """Since when the lease has had nothing older to do."""
    is_late: bool = False


@dataclass
class LeaseRecord:
    number: int
    since: float
    """When its phase began."""
    idle_since: float
    """When it last had something in hand, or began to live."""
    share_of_time: float
    """That it may live."""
    phase: Phase = Phase.OPENING
    slots: int = 0
    """That ask for a task now."""
    has_asked: bool = False
    """Else it is still on its way: between its hello and its first question lies another message."""
    served: int = 0
    owns: set[int] = field(default_factory=set)
    in_hand: dict[TaskKey, HeldTask] = field(default_factory=dict)
    """Oldest first."""
    is_silent: bool = False
    """Should have said hello, or gone, long ago."""

    @property
    def is_suspect(self) -> bool:
        return self.is_silent or any(hand.is_late for hand in self.in_hand.values())

    @property
    def is_free(self) -> bool:
        return self.phase is Phase.LIVE and self.slots > 0 and not self.is_suspect

    @property
    def is_coming(self) -> bool:
        on_its_way = self.phase is Phase.OPENING or (self.phase is Phase.LIVE and not self.has_asked)
        return on_its_way and not self.is_silent

    @property
    def stays(self) -> bool:
        return self.phase is not Phase.ENDING and not self.is_suspect


@dataclass
class TaskRecord:
    since: float
    """When it began to wait."""
    attempts: int = 0
    holders: set[int] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)

"""A queueing system around a lease tuner, without clock or network: intervals go round between cores and leases.

    cores (a graph stage, a core each)  ──▶  queue  ──▶  lease, two slots: transfer · compute, one at a time · transfer
              ▲                                                                                                   │
              └───────────────────────────────────────────────────────────────────────────────────────────────────┘

Times are seconds. A window is a few rounds of all intervals, as the gauge makes them.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from graph_server.schedule.lease_tuner import Decision, LeaseTuner, Window

SLOTS = 2
ROUNDS = 3
"""Of one window."""


@dataclass(frozen=True)
class Load:
    intervals: int = 24
    cores: int = 4
    graph: float = 0.02
    compute: float = 0.1
    transfer: float = 0.02
    """One way."""
    noise: float = 0.0
    """Of each time, relative."""


@dataclass
class Simulation:
    load: Load
    leases: int
    seed: int = 0
    now: float = 0.0
    _events: list[tuple[float, int, str, int, int]] = field(default_factory=list)
    """(when, number, what ends, interval, lease)."""
    _numbers: int = 0
    _busy_cores: int = 0
    _gathers: deque[int] = field(default_factory=deque)
    _tasks: deque[int] = field(default_factory=deque)
    _in_hand: dict[int, list[int]] = field(default_factory=dict)
    """Lease -> intervals whose tasks it has."""
    _computing: set[int] = field(default_factory=set)
    _arrived: dict[int, deque[int]] = field(default_factory=dict)
    _waiting_seconds: float = 0.0
    _slot_seconds: float = 0.0
    _core_seconds: float = 0.0
    done: int = 0

    def __post_init__(self) -> None:
        self._die = random.Random(self.seed)
        self._gathers.extend(range(self.load.intervals))
        self.retarget(self.leases)

    def retarget(self, leases: int) -> None:
        """Those above finish what they have."""
        self.leases = leases
        for lease in range(leases):
            self._in_hand.setdefault(lease, [])
            self._arrived.setdefault(lease, deque())
        self._start()

    def window(self) -> Window:
        before = self.now, self.done, self._waiting_seconds, self._slot_seconds, self._core_seconds
        while self.done < before[1] + ROUNDS * self.load.intervals:
            self._step()
        seconds = self.now - before[0]
        return Window(
            seconds=seconds,
            tasks=self.done - before[1],
            leases=self.leases,
            busy=(self._slot_seconds - before[3]) / (seconds * SLOTS * self.leases),
            waiting=(self._waiting_seconds - before[2]) / seconds,
            cores=(self._core_seconds - before[4]) / seconds / self.load.cores,
        )

    def _step(self) -> None:
        when, _, what, interval, lease = heapq.heappop(self._events)
        passed, self.now = when - self.now, when
        self._waiting_seconds += passed * len(self._tasks)
        self._slot_seconds += passed * sum(map(len, self._in_hand.values()))
        self._core_seconds += passed * (self._busy_cores + len(self._gathers))
        match what:
            case "gathered":
                self._busy_cores -= 1
                self._tasks.append(interval)
            case "arrived":
                self._arrived[lease].append(interval)
            case "computed":
                self._computing.discard(lease)
                self._later(self.load.transfer, "received", interval, lease)
            case "received":
                self._in_hand[lease].remove(interval)
                self._gathers.append(interval)
                self.done += 1
        self._start()

    def _start(self) -> None:
        while self._gathers and self._busy_cores < self.load.cores:
            self._busy_cores += 1
            self._later(self.load.graph, "gathered", self._gathers.popleft())
        while self._tasks:
            lease = min(range(self.leases), key=lambda lease: len(self._in_hand[lease]))
            if len(self._in_hand[lease]) >= SLOTS:
                break
            interval = self._tasks.popleft()
            self._in_hand[lease].append(interval)
            self._later(self.load.transfer, "arrived", interval, lease)
        for lease, arrived in self._arrived.items():
            if arrived and lease not in self._computing:
                self._computing.add(lease)
                self._later(self.load.compute, "computed", arrived.popleft(), lease)

    def _later(self, seconds: float, what: str, interval: int, lease: int = -1) -> None:
        noise = 1 + self.load.noise * self._die.uniform(-1, 1)
        self._numbers += 1
        heapq.heappush(self._events, (self.now + seconds * noise, self._numbers, what, interval, lease))


def rate(load: Load, leases: int) -> float:
    """Tasks a second once it goes steadily, without noise."""
    simulation = Simulation(replace(load, noise=0.0), leases)
    simulation.window()
    return simulation.window().rate


def fewest(load: Load, most: int, within: float) -> int:
    """Found by trying them all."""
    rates = {leases: rate(load, leases) for leases in range(1, most + 1)}
    return min(leases for leases, found in rates.items() if found >= (1 - within) * max(rates.values()))


def tune(
    simulation: Simulation,
    tuner: LeaseTuner,
    num_windows: int,
    seen: Callable[[Window], Window] = lambda window: window,
) -> list[Decision]:
    """The decisions; `seen` may change what the tuner is told."""
    decisions = []
    for _ in range(num_windows):
        decision = tuner.decide(seen(simulation.window()), simulation.now)
        if decision is not None:
            decisions.append(decision)
            simulation.retarget(decision.target)
    return decisions

"""How many leases? The fewest within 3 % of the best throughput. A closed loop: pure, `now` is an argument.

A window goes in: some rounds of all intervals under one target. After three of them the target may change:

    slots empty    ──> fewer: as many as those that are full, and not less than half-way to what is known as too few
    surely slower  ──> back up, half-way to the fewest that are known to be enough
    tasks wait, cores do not ──> half as many again, unless that is known to be no faster
    nothing left to try ──> hold; measure again, for the first time may have been luck; look again after a while, or
                            when slots are fuller or emptier, or a queue grows

What was tried is remembered until something changes, so nothing is tried twice; after a hold the nearest number that
was too few is, and more if tasks wait. Numbers that differ by less than a tenth are one: moving constants for that
costs more than it gains. How long it holds doubles until something has changed.

Source: Dorylus (OSDI'21), section 6: the number of Lambdas follows the queues.
"""

import math
from collections import deque
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev

WITHIN = 0.03
PROBE_WINDOWS = 3
"""The median of so many is a measurement."""
SETTLE_WINDOWS = 1
"""The first after a change is not counted: constants move."""
MUCH_SLOWER = 0.25
"""Below the best by so much, one window is enough."""
STEP = 0.1
"""Of a number of leases: what is nearer is the same."""
SPARE = 1.1
"""Slots for each task in hand."""
BUSY = 0.9
"""Share above which slots, or cores, have no time to spare."""
LONG_QUEUE = 0.25
"""Tasks that wait for a lease, for each lease."""
OTHERWISE = 1.5
"""Slots that are fuller or emptier by this factor: what was learnt no longer holds."""
MORE = 1.5
HOLD_WINDOWS, LONGEST_HOLD = 10, 160
TINY = 1e-9


@dataclass(frozen=True)
class Window:
    """Some rounds of all intervals under one target."""

    seconds: float
    tasks: int
    """Tensor tasks done, wherever."""
    leases: int
    """That lived at once, at the most."""
    busy: float
    """Share of the leases' slots that had a task, on average."""
    waiting: float
    """Tasks that waited for a lease, on average."""
    cores: float
    """Graph stages under way or waiting, per core of the graph server, on average."""
    throttled: int = 0
    """Leases that the service refused."""

    @property
    def rate(self) -> float:
        return self.tasks / self.seconds


@dataclass(frozen=True)
class Measured:
    """Of a few windows."""

    leases: int
    rate: float
    busy: float
    waiting: float
    cores: float
    error: float = 0.0
    """Of the rate."""

    def is_slower(self, than: "Measured") -> bool:
        """Surely, and by more than is let pass."""
        return self.rate + self.error < (1 - WITHIN) * (than.rate - than.error)


@dataclass(frozen=True)
class Decision:
    target: int
    reason: str
    seen: Measured


class LeaseTuner:
    """`least` to `most`: the bounds of the target, which is `start` at first."""

    def __init__(self, *, least: int, most: int, start: int) -> None:
        assert 1 <= least <= most
        self._least, self._most, self._granted = least, most, most
        self.target = min(max(start, least), most)
        self._windows: deque[Window] = deque(maxlen=PROBE_WINDOWS)
        self._to_skip = SETTLE_WINDOWS
        self._known: dict[int, Measured] = {}
        self._hold_windows, self._held_since, self._holds = HOLD_WINDOWS, 0.0, False
        self._doubts = True

    def decide(self, window: Window, now: float) -> Decision | None:
        """None: nothing new."""
        if window.throttled and window.leases < self.target:
            return self._limit(window)
        if self._to_skip:
            self._to_skip -= 1
            return None
        self._windows.append(window)
        measured = self._measure()
        if self._holds:
            return self._while_holding(measured, now)
        if len(self._windows) == PROBE_WINDOWS or self._is_much_slower(measured):
            return self._choose(measured, now)
        return None

    # ---- what was measured

    def _measure(self) -> Measured:
        windows = self._windows
        rates = [window.rate for window in windows]
        return Measured(
            leases=max(self._least, min(self.target, max(window.leases for window in windows))),
            rate=median(rates),
            busy=fmean(window.busy for window in windows),
            waiting=fmean(window.waiting for window in windows),
            cores=fmean(window.cores for window in windows),
            error=stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else 0.0,
        )

    def _is_much_slower(self, measured: Measured) -> bool:
        best = max(self._known.values(), key=lambda known: known.rate, default=measured)
        return measured.rate < (1 - MUCH_SLOWER) * (best.rate - 3 * best.error)

    def _fewest(self) -> int:
        """That are not known to be too few."""
        return min(leases for leases in self._known if not self._are_too_few(leases))

    def _are_too_few(self, leases: int) -> bool:
        return any(self._known[leases].is_slower(than) for than in self._known.values())

    # ---- what to do

    def _choose(self, here: Measured, now: float) -> Decision:
        self._known[here.leases] = here
        fewest = self._fewest()
        if self._is_short(here):
            why = f"{here.waiting:.1f} tasks wait, slots are {here.busy:.0%} full, cores {here.cores:.0%} busy"
            return self._move(min(self._granted, math.ceil(MORE * here.leases)), f"more: {why}", here)
        too_few = max((leases for leases in self._known if leases < fewest), default=self._least - 1)
        between = self._between(too_few, fewest)
        if here.leases < fewest:
            rates = f"{here.rate:.3g} tasks/s with {here.leases}, {self._known[fewest].rate:.3g} with {fewest}"
            if between and here.leases == self.target:
                return self._move(between, f"more: {rates}", here)
        elif between:
            return self._move(between, f"fewer: slots are {here.busy:.0%} full, cores {here.cores:.0%} busy", here)
        return self._settle(fewest, here, now)

    def _is_short(self, here: Measured) -> bool:
        """Of leases: tasks wait, or the next fewer are slower; and it is not known whether more would help."""
        if not here.leases == self.target == max(self._known) < self._granted or here.cores >= BUSY:
            return False
        fewer = max((leases for leases in self._known if leases < here.leases), default=here.leases)
        return _asks_for_more(here) or self._known[fewer].is_slower(here)

    def _between(self, too_few: int, enough: int) -> int | None:
        """What to try next: more than are too few, fewer than are enough. None: that is not worth it."""
        step = max(1, round(STEP * enough))
        if enough - too_few <= step:
            return None
        measured = self._known[enough]
        wanted = math.ceil(SPARE * measured.busy * enough)
        if wanted > enough - step:
            return None
        return max(wanted, (too_few + enough) // 2, self._least)

    def _move(self, target: int, reason: str, here: Measured) -> Decision:
        self.target, self._to_skip = target, SETTLE_WINDOWS
        self._windows.clear()
        return Decision(target, reason, here)

    def _settle(self, fewest: int, here: Measured, now: float) -> Decision:
        tried = ", ".join(f"{known.rate:.3g} with {leases}" for leases, known in sorted(self._known.items()))
        moves = fewest != self.target
        self._holds, self._held_since = True, now
        self._windows.clear()
        self.target, self._to_skip = fewest, SETTLE_WINDOWS if moves else 0
        return Decision(fewest, f"the fewest within {WITHIN:.0%} of the best; tasks/s: {tried}", here)

    def _limit(self, window: Window) -> Decision | None:
        """The service lets no more run at once."""
        granted = max(self._least, window.leases)
        if granted == self._granted:
            return None
        self._granted = granted
        self._known = {leases: known for leases, known in self._known.items() if leases <= granted}
        here = Measured(window.leases, window.rate, window.busy, window.waiting, window.cores)
        return self._move(granted, f"throttled {window.throttled} times: no more are granted", here)

    # ---- while nothing changes

    def _while_holding(self, here: Measured, now: float) -> Decision | None:
        if len(self._windows) < PROBE_WINDOWS:
            return None
        known = self._known.setdefault(self.target, here)
        if not known.busy / OTHERWISE - 0.05 <= here.busy <= known.busy * OTHERWISE + 0.05:
            self._hold_windows, self._known, self._doubts = HOLD_WINDOWS, {}, True
            return self._look_again(here, now, f"slots were {known.busy:.0%} full, now {here.busy:.0%}")
        if self._doubts:
            self._doubts, self._known[self.target] = False, here
            if self._fewest() < self.target:
                return self._look_again(here, now, "measured again")
        if self._is_short(here):
            return self._look_again(here, now, "a queue grew")
        if now - self._held_since >= self._hold_windows * fmean(window.seconds for window in self._windows):
            return self._after_hold(here, now, faster=here.rate / max(known.rate, TINY))
        return None

    def _after_hold(self, here: Measured, now: float, *, faster: float) -> Decision | None:
        self._hold_windows, self._doubts = min(2 * self._hold_windows, LONGEST_HOLD), True
        before = self.target
        below, above = ({n for n in self._known if n < before}, {n for n in self._known if n > before})
        self._forget({max(below, default=0)} | (above if _asks_for_more(here) else set()), faster=faster)
        decision = self._look_again(here, now, "held for long")
        return decision if decision.target != before else None

    def _forget(self, some: set[int], *, faster: float) -> None:
        """The others went as much faster as this one goes now."""
        kept = {leases: known for leases, known in self._known.items() if leases not in some}
        self._known = {
            leases: replace(known, rate=known.rate * faster, error=known.error * faster)
            for leases, known in kept.items()
        }

    def _look_again(self, here: Measured, now: float, why: str) -> Decision:
        self._holds, self._granted = False, self._most
        decision = self._choose(here, now)
        return replace(decision, reason=f"{why}; {decision.reason}")


def _asks_for_more(here: Measured) -> bool:
    """A queue within leases counts as well as one before them."""
    return here.cores < BUSY and (here.busy >= BUSY or here.waiting >= max(1, LONG_QUEUE * here.leases))

"""Who has not been heard of? A beat comes from each role's own loop, so a role that hangs is missed, too. Pure."""

from collections.abc import Iterable


class Membership:
    """`expected` names; `limit` in seconds without a beat, counted from `began` for those that never beat."""

    def __init__(self, expected: Iterable[str], *, limit: float, began: float) -> None:
        self._last = dict.fromkeys(expected, began)
        self._limit = limit

    def beat(self, name: str, now: float) -> None:
        if name in self._last:
            self._last[name] = now

    def lost(self, now: float) -> tuple[str, ...]:
        return tuple(sorted(name for name, last in self._last.items() if now - last > self._limit))

    def silent_for(self, name: str, now: float) -> float:
        return now - self._last[name]

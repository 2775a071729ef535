"""How fast may leases be opened? A token bucket whose rate halves with every throttled one and recovers. Pure."""

from dataclasses import dataclass, field


@dataclass
class TokenBucket:
    """`rate` tokens a second, at most `burst` at once."""

    rate: float
    burst: float
    slowest: float = 0.5
    _tokens: float = field(init=False)
    _slowed: float = field(init=False)
    _seen: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._tokens, self._slowed = self.burst, self.rate

    def take(self, now: float) -> bool:
        self._refill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def throttled(self, now: float) -> None:
        self._refill(now)
        self._tokens = 0
        self._slowed = max(self._slowed / 2, self.slowest)

    def succeeded(self) -> None:
        self._slowed = min(self._slowed * 1.5, self.rate)

    def _refill(self, now: float) -> None:
        self._tokens = min(self.burst, self._tokens + max(0.0, now - self._seen) * self._slowed)
        self._seen = max(self._seen, now)

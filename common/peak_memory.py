"""How much memory this process took at most, as far as it was looked at."""

import resource
import sys
import time
from pathlib import Path

ROLLUP = Path("/proc/self/smaps_rollup")
SECONDS_BETWEEN = 1.0
"""Reading the sum walks all pages of the process: milliseconds on a large graph."""


class PeakMemory:
    """The largest proportional set size seen (Linux; memory shared with others counts by share), elsewhere the largest
    resident set size, which the system keeps itself."""

    def __init__(self) -> None:
        self.bytes = 0
        self._next = 0.0

    def sample(self, *, at_once: bool = False) -> int:
        """Looks, unless it did so within the last second; the peak so far."""
        now = time.monotonic()
        if at_once or now >= self._next:
            self._next = now + SECONDS_BETWEEN
            self.bytes = max(self.bytes, _bytes_now())
        return self.bytes


def _bytes_now() -> int:
    try:
        lines = ROLLUP.read_text(encoding="ascii").splitlines()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)

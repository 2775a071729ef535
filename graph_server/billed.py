"""What the functions of one graph server are billed, by the line that Lambda ends each invocation's log with.

    REPORT RequestId: ...  Duration: 812.20 ms  Billed Duration: 813 ms  Memory Size: 1769 MB  ...

Without that line an invocation counts as long as somebody waited for it, which is a little longer.
"""

import base64
import binascii
import math
import re

REPORT = re.compile(r"Billed Duration: (\d+) ms\s+Memory Size: (\d+) MB")


class Billed:
    """`memory_mb`: of a function that does not say."""

    def __init__(self, memory_mb: int) -> None:
        self._memory_mb = memory_mb
        self.requests = self.mb_ms = self.open = 0
        """`open`: invocations that run now, and are in none of the other sums."""

    def told(self, log: str, seconds: float) -> None:
        """`log`: the end of it as Lambda answers it, in base64; `seconds`: from request to answer."""
        try:
            found = REPORT.findall(base64.b64decode(log).decode(errors="replace"))
        except binascii.Error:
            found = []
        if not found:
            return self.unknown(seconds)
        (billed_ms, memory_mb) = found[-1]
        return self._add(int(billed_ms) * int(memory_mb))

    def unknown(self, seconds: float) -> None:
        """Nobody said: the answer was lost on the way."""
        self._add(math.ceil(1000 * seconds) * self._memory_mb)

    def _add(self, mb_ms: int) -> None:
        self.requests += 1
        self.mb_ms += mb_ms

    @property
    def counts(self) -> dict[str, int]:
        return {"function_requests": self.requests, "function_mb_ms": self.mb_ms, "functions_open": self.open}

"""How much memory a worker took at most. Linux tells of any process; elsewhere there is no cap.

An address-space limit (RLIMIT_AS) cannot stand for Lambda's memory: NumPy and ZeroMQ reserve far more than they touch.
So the largest resident set since the process began is read, while a function works and once more when it is done: a
function that went over its memory fails, even if nobody looked at that moment. Processes it started are not counted.
"""

from pathlib import Path

SECONDS_BETWEEN = 0.1


def peak_bytes(pid: int) -> int | None:
    """None where the system does not tell, or the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    for field in ("VmHWM:", "VmRSS:"):
        _, found, rest = status.partition(field)
        if found:
            return int(rest.split(maxsplit=1)[0]) * 1024
    return None

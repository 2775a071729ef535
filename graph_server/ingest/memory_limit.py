"""What a container may still take: the limits of this process's control group and of all above it (Linux, v1 and v2).

Pages of files that were not read lately count as taken there, and are given back when somebody asks.
"""

from collections.abc import Iterator
from pathlib import Path

PROC, MOUNT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
UNLIMITED = 2**60
"""v1 writes a number near 2^63 where there is no limit."""


def left_in_groups(proc: Path = PROC, mount: Path = MOUNT) -> int | None:
    """Bytes; None where nothing limits it."""
    found = [left for folder, names in _folders(proc, mount) if (left := _left(folder, *names)) is not None]
    return min(found, default=None)


def _folders(proc: Path, mount: Path) -> Iterator[tuple[Path, tuple[str, str]]]:
    for line in proc.read_text().splitlines() if proc.is_file() else ():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            yield from ((folder, ("memory.max", "memory.current")) for folder in _upwards(mount, path))
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            yield from ((folder, names) for folder in _upwards(mount / "memory", path))


def _upwards(top: Path, path: str) -> Iterator[Path]:
    """From a group to the top; in a container the path may be that of the host, and only the top is there."""
    folder = top / path.strip("/")
    while folder != top:
        yield folder
        folder = folder.parent
    yield top


def _left(folder: Path, limit: str, usage: str) -> int | None:
    try:
        most, used = int((folder / limit).read_text()), int((folder / usage).read_text())
        words = (folder / "memory.stat").read_text().split()
    except (OSError, ValueError):  # no such group, or "max"
        return None
    if most >= UNLIMITED:
        return None
    stat = dict(zip(words[::2], words[1::2], strict=False))
    return max(0, most - used + int(stat.get("total_inactive_file", stat.get("inactive_file", 0))))

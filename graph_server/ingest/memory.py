"""How much memory this machine can still give. What would not fit is refused before it is taken."""

import os
from pathlib import Path

from common.errors import DatasetError

_MEMINFO = Path("/proc/meminfo")


def available_memory_bytes() -> int:
    """What this machine can still give; all of its memory where the system does not tell (macOS)."""
    # Not SC_AVPHYS_PAGES: it counts as taken what the file cache would give back at once.
    if _MEMINFO.is_file():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_num_nodes(num_nodes: int, where: object) -> None:
    """Refuses a number of vertices, as a file announces it, that not even their ids have room for."""
    free = available_memory_bytes()
    if num_nodes < 1:
        raise DatasetError(
            f"{where} announces {num_nodes} vertices", "there is nothing to train on", "correct the file"
        )
    if num_nodes * 8 > free:
        raise DatasetError(
            what=f"{where} announces {num_nodes} vertices: their ids alone take {num_nodes * 8 / 1e9:.1f} GB",
            why=f"{free / 1e9:.1f} GB of memory are free",
            fix="correct the number, if it is damaged, or use a machine with more memory",
        )

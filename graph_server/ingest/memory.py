"""How much memory this machine can still give. What would not fit is refused before it is taken."""

import os
import resource
from pathlib import Path

from common.errors import DatasetError
from graph_server.ingest.memory_limit import left_in_groups

_MEMINFO, _STATM = Path("/proc/meminfo"), Path("/proc/self/statm")
_NODE_BYTES = 32
"""Of a vertex without features: its id, its place in an index, its label, its degree."""


def available_memory_bytes() -> int:
    """What this machine, a container's limit on it, or `ulimit -v` can still give."""
    groups = left_in_groups()
    return min(left for left in (groups, _left_in_address_space(), _free_bytes()) if left is not None)


def _left_in_address_space() -> int | None:
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY or not _STATM.is_file():
        return None
    return max(0, most - int(_STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE"))


def _free_bytes() -> int:
    """All of the memory where the system does not tell (macOS)."""
    # Not SC_AVPHYS_PAGES: it counts as taken what the file cache would give back at once.
    if _MEMINFO.is_file():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_num_nodes(num_nodes: int, where: object) -> None:
    """Refuses a number of vertices, as a file announces it, that there is no room for even without features."""
    free, needed = available_memory_bytes(), num_nodes * _NODE_BYTES
    if num_nodes < 1:
        raise DatasetError(
            f"{where} announces {num_nodes} vertices", "there is nothing to train on", "correct the file"
        )
    if needed > free:
        raise DatasetError(
            what=f"{where} announces {num_nodes} vertices: without features they take {needed / 1e9:.1f} GB",
            why=f"{free / 1e9:.1f} GB of memory are free",
            fix="correct the number, if it is damaged, or use a machine with more memory",
        )

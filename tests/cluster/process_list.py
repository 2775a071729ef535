"""The processes of this machine, and which of them a job has started, however deep."""

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

PROC = Path("/proc")
GONE_SECONDS = 20.0
"""How long a process may take to go, on a machine that has much else to do."""

needs_proc = pytest.mark.skipif(not PROC.is_dir(), reason="processes are found through /proc")


@dataclass(frozen=True)
class Process:
    """`started` tells it from a later one of the same number."""

    pid: int
    parent: int
    started: int
    command: str

    @property
    def is_alive(self) -> bool:
        found = read(self.pid)
        return found is not None and found.started == self.started

    @property
    def log(self) -> str:
        """The file that its stderr goes to."""
        with contextlib.suppress(OSError):
            return str((PROC / str(self.pid) / "fd" / "2").readlink())
        return ""


def read(pid: int) -> Process | None:
    """None if there is none, or only its exit code is left."""
    with contextlib.suppress(OSError):
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        command = (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        if fields[0] not in "ZX":
            return Process(pid, int(fields[1]), int(fields[19]), command)
    return None


def started_by(pid: int) -> list[Process]:
    """Its children, and theirs."""
    everyone = [found for name in os.listdir(PROC) if name.isdigit() and (found := read(int(name))) is not None]
    family, found = {pid}, list[Process]()
    while fresh := [process for process in everyone if process.parent in family and process.pid not in family]:
        family |= {process.pid for process in fresh}
        found += fresh
    return found


def left_after_a_while(processes: Iterable[Process]) -> list[Process]:
    deadline = time.monotonic() + GONE_SECONDS
    left = [process for process in processes if process.is_alive]
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = [process for process in left if process.is_alive]
    return left

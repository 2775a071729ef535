"""A command as a process of its own: what it printed, how much memory it and its children took, who else was busy."""

import os
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

from benchmarks.stopwatch import machine_seconds

UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Some machines set these; a measurement is of what a newcomer gets, so every run chooses for itself."""
SECONDS_BETWEEN = 1.0
"""Looks at memory: each walks all pages of all processes."""
LAST_WORDS = 2000
ERROR = re.compile(r"error: |[\w.]+Error\b")
"""How a command of ours says it, and how Python does."""


@dataclass(frozen=True)
class Finished:
    """code: None if it was ended for taking too long. peak_bytes: the largest sum of the processes' proportional set
    sizes that was seen. others: the share of all cores that processes of others had meanwhile."""

    code: int | None
    stdout: str
    stderr: str
    peak_bytes: int
    others: float

    @property
    def why(self) -> str:
        """What it said of that, if it failed."""
        if self.code is None:
            return "took too long"
        lines = [line for line in self.stderr.splitlines() if ERROR.match(line)]
        return "" if self.code == 0 else next(iter(lines), f"ended with exit code {self.code}")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This one's, without what would choose kernels or numbers of threads; and `more`."""
    return {name: value for name, value in os.environ.items() if name not in UNSET} | dict(more or {})


def run_watched(
    command: Sequence[str], env: Mapping[str, str], *, seconds: float, between: float = SECONDS_BETWEEN
) -> Finished:
    """Ends it after so many seconds. between: looks at memory."""
    cores, began, busy, own = os.cpu_count() or 1, time.monotonic(), machine_seconds(), _children_seconds()
    peak, deadline = 0, began + seconds
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        try:
            while process.poll() is None and time.monotonic() < deadline:
                peak = max(peak, memory_of(process.pid))
                _wait(process, min(between, max(0.0, deadline - time.monotonic())))
        finally:
            code = process.poll()
            if code is None:
                process.kill()  # the roles of a training see that their pipe is closed
                process.wait()
        wall = time.monotonic() - began
        others = (machine_seconds() - busy - (_children_seconds() - own)) / wall / cores
        return Finished(code, _read(out), _read(err)[-LAST_WORDS:], peak, max(0.0, others))


def memory_of(pid: int) -> int:
    """Bytes, of a process and all below it; memory that several share counts once."""
    total = 0
    try:
        processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in processes:
        try:
            found = process.memory_full_info()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        total += getattr(found, "pss", found.rss)
    return total


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _children_seconds() -> float:
    """Of processes that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _read(file: "tempfile._TemporaryFileWrapper[bytes]") -> str:
    file.seek(0)
    return file.read().decode(errors="replace")

"""Kernels of one kind on one graph: ours, plain loops, scipy's, a C compiler's, DGL's. Each runs on all cores.

Whoever has no threads of its own gets runs of rows of about equal work, which the threads of one pool take in turns.
"""

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse
from numba import njit

from benchmarks.watched import environment
from graph_server.graph import aligned
from graph_server.graph.attention_kernels import attention_backward, attention_forward
from graph_server.graph.bfloat16 import to_bfloat16
from graph_server.graph.csr import Csr
from graph_server.graph.exponential import exp
from graph_server.graph.sum_kernels import weighted_sum

CORES = os.cpu_count() or 1
RUNS_PER_CORE = 16
SLOPE = np.float32(0.2)
SOURCE = Path(__file__).with_name("sum_rows.c")
DGL_PROGRAM = Path(__file__).parent / "peers" / "kernels_with_dgl.py"
Run = Callable[[int, int], object]
"""Of rows first to last."""
Timed = Callable[[], float]
"""One run over the whole graph: how many seconds it took."""


@dataclass(frozen=True, eq=False)
class OnAllCores:
    csr: Csr
    threads: ThreadPoolExecutor

    def timed(self, run: Run) -> Timed:
        work = self.csr.indptr + np.arange(self.csr.num_rows + 1)
        shares = np.arange(1, CORES * RUNS_PER_CORE) * work[-1] // (CORES * RUNS_PER_CORE)
        ends = np.unique([0, *np.searchsorted(work, shares), self.csr.num_rows]).tolist()

        def once() -> float:
            began = time.perf_counter()
            list(self.threads.map(run, ends[:-1], ends[1:]))
            return time.perf_counter() - began

        return once


def rows_of(csr: Csr, width: int) -> npt.NDArray[np.float32]:
    table = aligned.zeros((csr.num_rows, width), np.float32)
    table[:] = np.random.default_rng(0).standard_normal(table.shape, np.float32)
    return table


def sums(cores: OnAllCores, width: int, folder: Path) -> dict[str, Timed | None]:
    """By name; None: cannot run here."""
    csr, table = cores.csr, rows_of(cores.csr, width)
    indptr, indices, rounded = csr.indptr, csr.indices, to_bfloat16(table)
    loops, ones = np.zeros(csr.num_rows, np.bool_), np.ones(csr.num_rows, np.float32)
    out = aligned.zeros(table.shape, np.float32)

    def scipy_rows(first: int, last: int) -> None:
        begin, end = indptr[first], indptr[last]
        block = (values[begin:end], indices[begin:end], (indptr[first : last + 1] - begin).astype(np.int32))
        out[first:last] = scipy.sparse.csr_array(block, shape=(last - first, csr.num_rows)) @ table

    values = np.ones(len(indices), np.float32)
    compiled = c_kernel(width, folder)
    pointers = [array.ctypes.data for array in (indptr, indices, loops, table, ones, out)]
    kernels: dict[str, Run | None] = {
        "ours": lambda a, b: weighted_sum(indptr, indices, loops, table, ones, out, (a, b)),
        "ours, bfloat16": lambda a, b: weighted_sum(indptr, indices, loops, rounded, ones, out, (a, b)),
        "plain loops": lambda a, b: plain_sum(indptr, indices, table, out, a, b),
        "scipy": scipy_rows,
        "C": compiled and (lambda a, b: compiled(*pointers, len(indices), a, b)),
    }
    return {name: run and cores.timed(run) for name, run in kernels.items()}


def attentions(cores: OnAllCores, heads: int, d: int) -> dict[str, Timed | None]:
    csr, hd = cores.csr, heads * d
    source, table = rows_of(csr, hd + 2 * heads), rows_of(csr, hd + heads)
    gradients, ids = rows_of(csr, hd + 3 * heads), np.arange(csr.num_rows)
    out, saved, grad = (aligned.zeros((csr.num_rows, n), np.float32) for n in (hd, hd + 2 * heads, hd + 2 * heads))
    graph = (csr.indptr, csr.indices, np.zeros(csr.num_rows, np.bool_))
    options = ((heads, d), SLOPE, (np.zeros(-(-heads // 8), np.uint64), 0, np.float32(1)))
    t = source[:, hd + heads :]
    kernels: dict[str, Run] = {
        "ours": lambda a, b: attention_forward(*graph, table, ids, t, *options, out, saved, (a, b)),
        "ours, backward": lambda a, b: attention_backward(
            *graph, gradients, ids, source, saved, *options, grad, (a, b)
        ),
        "plain loops": lambda a, b: plain_attention(*graph[:2], table, t, (heads, d), SLOPE, out, (a, b)),
    }
    return {name: cores.timed(run) for name, run in kernels.items()}


@njit(nogil=True)
def plain_sum(indptr, columns, table, out, first, last):
    for v in range(first, last):
        out[v, :] = 0
        for e in range(indptr[v], indptr[v + 1]):
            for k in range(table.shape[1]):
                out[v, k] += table[columns[e], k]


@njit(nogil=True, error_model="numpy")
def plain_attention(indptr, columns, table, t, shape, slope, out, rows):
    """Softmax and sum in two walks over a row's edges; keeps nothing for a backward pass."""
    heads, d = shape
    for v in range(rows[0], rows[1]):
        out[v, :] = 0
        for h in range(heads):
            top, total = np.float32(-np.inf), np.float32(0)
            for e in range(indptr[v], indptr[v + 1]):
                top = max(top, table[columns[e], heads * d + h])
            top = max(top + t[v, h], (top + t[v, h]) * slope)
            for e in range(indptr[v], indptr[v + 1]):
                x = table[columns[e], heads * d + h] + t[v, h]
                a = exp(max(x, x * slope) - top)
                total += a
                for k in range(h * d, h * d + d):
                    out[v, k] += a * table[columns[e], k]
            for k in range(h * d, h * d + d):
                out[v, k] /= total


def c_kernel(width: int, folder: Path) -> Run | None:
    """None where there is no gcc."""
    compiler, library = shutil.which("gcc"), folder / f"sum_rows_{width}.so"
    if compiler is None:
        return None
    flags = ["-O3", "-march=native", "-shared", "-fPIC", f"-DWIDTH={width}"]
    subprocess.run([compiler, *flags, str(SOURCE), "-o", str(library)], check=True)
    function = ctypes.CDLL(str(library)).sum_rows
    function.argtypes, function.restype = [ctypes.c_void_p] * 6 + [ctypes.c_int64] * 3, None
    return function


@contextmanager
def dgl_kernels(python: Path | None, csr_path: Path) -> Iterator[Callable[[str], Timed] | None]:
    """From what to ask (`sum 128`) to a run of it, in one process that lives as long; None without such a Python."""
    if python is None or not python.exists():
        yield None
        return
    command = [str(python), str(DGL_PROGRAM), str(csr_path), str(CORES)]
    with tempfile.TemporaryFile() as noise:
        process = subprocess.Popen(
            command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=noise, text=True
        )
        asked, answers = process.stdin, process.stdout
        assert asked is not None
        assert answers is not None

        def timed(question: str) -> Timed:
            def once() -> float:
                asked.write(question + "\n")
                asked.flush()
                return float(answers.readline())

            return once

        try:
            yield timed
        finally:
            asked.close()
            process.wait()

"""How near the graph kernels come to the machine's limits, and to other kernels: in turns, on one graph, on all cores.

    python benchmarks/kernels.py [--quick] [--json FILE] [--graphs SIZE ...] [--dgl-python PATH]

A sum adds one row per edge: edges x width numbers are read and as many added. Limits: how fast all cores read memory
that is in no cache, and add numbers that are in registers. Rows of hot vertices come from caches, so a sum may read
more than the first limit says.

Goals: for widths of 16 to 256 a sum takes at most 1.15 times as long as a C compiler's; 128 wide, DGL's takes at least
1.3 times as long as ours, and 2.5 times as long as ours of bfloat16 rows on the graph of Reddit's size.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numba import njit
from rich.console import Console
from rich.table import Table

from benchmarks.goals import Goal, arguments, write
from benchmarks.kernel_contestants import CORES, OnAllCores, Timed, attentions, dgl_kernels, sums
from benchmarks.sizes import SIZES, csr_file
from benchmarks.stopwatch import machine_seconds, processor_seconds
from graph_server.graph import vectors
from graph_server.graph.csr import Csr

WITHIN_C, OVER_DGL, ROUNDED_OVER_DGL = 1.15, 1.3, 2.5
RATED = 128
WIDTHS, QUICK_WIDTHS = (16, 41, 64, 128, 256, 602), (16, 41, 128, 256)
GOAL_WIDTHS = range(16, 257)
SHAPES = ((8, 8), (1, 41))
GRAPHS, QUICK_GRAPHS = ("arxiv", "reddit"), ("arxiv",)
SLOW = ("scipy", "plain loops")
"""These run once, not in every round."""
DGL_PYTHON = Path(__file__).resolve().parents[1] / ".peers" / "dgl" / "bin" / "python"
PROBE_NUMBERS = 1 << 26
WIDTH = 110
"""Of the table, in characters."""


@dataclass(frozen=True)
class Measured:
    """One kernel on one graph; seconds: of each round."""

    graph: str
    kernel: str
    by: str
    num_edges: int
    width: int
    seconds: Sequence[float]
    number_bytes: int = 4

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def gigabytes(self) -> float:
        """Per second, of rows read."""
        return self.num_edges * self.width * self.number_bytes / self.median / 1e9

    @property
    def gigaflops(self) -> float:
        return self.num_edges * self.width / self.median / 1e9


@dataclass(frozen=True)
class Limits:
    """Of all cores together: bytes read from memory and float32 additions, both per second in thousands of millions."""

    gigabytes: float
    gigaflops: float


@njit(nogil=True)
def _read(array, first, last, out):
    total = vectors.zeros(array, 128)
    for position in range(first, last, 128):
        total += vectors.load(array, position, 128)
    vectors.store(out, 0, total)


@njit(nogil=True)
def _add(array, first, last, out):
    total, row = vectors.zeros(array, 128), vectors.load(array, 0, 128)
    for _ in range(first, last, 128):
        total += row
    vectors.store(out, 0, total)


def limits(threads: ThreadPoolExecutor) -> Limits:
    """The best of five."""
    array = np.ones(PROBE_NUMBERS, np.float32)
    ends = np.linspace(0, PROBE_NUMBERS // 128, CORES + 1).astype(int) * 128

    def numbers_per_second(probe: Callable[..., None]) -> float:
        def share(first: int, last: int) -> None:
            probe(array, first, last, np.empty(128, np.float32))

        seconds = []
        for _ in range(6):
            began = time.perf_counter()
            list(threads.map(share, ends[:-1], ends[1:]))
            seconds.append(time.perf_counter() - began)
        return PROBE_NUMBERS / min(seconds[1:])

    return Limits(4 * numbers_per_second(_read) / 1e9, numbers_per_second(_add) / 1e9)


def in_turns(
    contestants: Mapping[str, Timed | None], num_rounds: int, *, once: Sequence[str]
) -> dict[str, list[float]]:
    """Seconds of each round, after one that does not count; those of `once` run but once. Each round has an order of
    its own, for whoever follows one that reads the same rows finds them in the caches."""
    running = [(name, run) for name, run in contestants.items() if run is not None]
    found: dict[str, list[float]] = {name: [] for name, _ in running}
    for round_ in range(num_rounds + 1):
        for place in np.random.default_rng(round_).permutation(len(running)).tolist():
            name, run = running[place]
            if name in once and round_ != 1:
                continue
            seconds = run()
            if round_ > 0:
                found[name].append(seconds)
    return found


def measure(size: str, widths: Sequence[int], num_rounds: int, dgl_python: Path | None) -> list[Measured]:
    path = csr_file(SIZES[size])
    with np.load(path) as file:
        csr = Csr(file["indptr"], file["indices"])
    num_edges, measured = len(csr.indices), []

    def add(kernel: str, width: int, contestants: dict[str, Timed | None]) -> None:
        for by, seconds in in_turns(contestants, num_rounds, once=SLOW).items():
            number_bytes = 2 if by.endswith("bfloat16") else 4
            measured.append(Measured(size, kernel, by, num_edges, width, seconds, number_bytes))
        Console(stderr=True).print(f"{size}: {kernel}")

    with (
        ThreadPoolExecutor(CORES) as threads,
        tempfile.TemporaryDirectory() as folder,
        dgl_kernels(dgl_python, path) as dgl,
    ):
        cores = OnAllCores(csr, threads)
        for width in widths:
            add(f"sum {width}", width, {**sums(cores, width, Path(folder)), "DGL": dgl and dgl(f"sum {width}")})
        for heads, d in SHAPES:
            question = f"attention {heads} {d}"
            contestants = {**attentions(cores, heads, d), "DGL": dgl and dgl(question)}
            add(f"attention {heads}x{d}", heads * (d + 1), contestants)
    return measured


def ratio(measured: Sequence[Measured], graph: str, kernel: str, by: str, over: str) -> float | None:
    """How many times as long `by` takes as `over`; None if one of them did not run."""
    medians = {m.by: m.median for m in measured if (m.graph, m.kernel) == (graph, kernel)}
    return medians[by] / medians[over] if by in medians and over in medians else None


def goals_of(measured: Sequence[Measured], graphs: Sequence[str], widths: Sequence[int]) -> dict[str, Goal]:
    goals = {}
    for graph in graphs:
        for width in widths:
            if width in GOAL_WIDTHS:
                value = ratio(measured, graph, f"sum {width}", "ours", "C")
                goals[f"{graph}, sum {width}: ours over C"] = Goal(value, WITHIN_C, at_most=True)
        rated = f"sum {RATED}"
        goals[f"{graph}, {rated}: DGL over ours"] = Goal(ratio(measured, graph, rated, "DGL", "ours"), OVER_DGL)
        if graph == "reddit":
            value = ratio(measured, graph, rated, "DGL", "ours, bfloat16")
            goals[f"{graph}, {rated}: DGL over ours, bfloat16"] = Goal(value, ROUNDED_OVER_DGL)
    return goals


def show(measured: Sequence[Measured], machine: Limits, others: float) -> None:
    title = (
        f"{CORES} cores read {machine.gigabytes:.0f} GB/s, add {machine.gigaflops:.0f} Gflop/s; others: {others:.0%}"
    )
    table = Table(title=title)
    for column in ("graph", "kernel", "by", "ms", "least ms", "GB/s", "Gflop/s", "times ours"):
        table.add_column(column, justify="left" if column in ("graph", "kernel", "by") else "right", no_wrap=True)
    for m in measured:
        times_ours = ratio(measured, m.graph, m.kernel, m.by, "ours")
        numbers = (1e3 * m.median, 1e3 * min(m.seconds), m.gigabytes, m.gigaflops, times_ours)
        table.add_row(m.graph, m.kernel, m.by, *("" if n is None else f"{n:.2f}" for n in numbers))
    Console(width=WIDTH).print(table)


def rows_of(measured: Sequence[Measured], machine: Limits, others: float) -> list[dict[str, object]]:
    return [
        {
            "graph": m.graph,
            "kernel": m.kernel,
            "by": m.by,
            "seconds": list(m.seconds),
            "gigabytes_per_second": m.gigabytes,
            "gigaflops": m.gigaflops,
            "of_memory_bandwidth": m.gigabytes / machine.gigabytes,
            "of_peak_additions": m.gigaflops / machine.gigaflops,
            "times_ours": ratio(measured, m.graph, m.kernel, m.by, "ours"),
            "others": others,
        }
        for m in measured
    ]


def others_share(run: Callable[[], object]) -> float:
    """Of all cores, what processes of others had while this ran."""
    began, machine, own = time.monotonic(), machine_seconds(), processor_seconds() + time.process_time()
    run()
    used = processor_seconds() + time.process_time() - own
    return max(0.0, machine_seconds() - machine - used) / (time.monotonic() - began) / CORES


def parser() -> argparse.ArgumentParser:
    made = arguments("Sums and attention over edges, beside other kernels and the machine's limits.")
    made.add_argument("--graphs", nargs="+", choices=SIZES, metavar="SIZE", help=f"of {', '.join(SIZES)}")
    made.add_argument("--dgl-python", type=Path, default=DGL_PYTHON, metavar="PATH", help="a Python that has DGL")
    return made


def main() -> None:
    given = parser().parse_args()
    graphs = given.graphs or (QUICK_GRAPHS if given.quick else GRAPHS)
    widths, num_rounds = (QUICK_WIDTHS, 3) if given.quick else (WIDTHS, 7)
    measured: list[Measured] = []
    with ThreadPoolExecutor(CORES) as threads:
        machine = limits(threads)

    def all_graphs() -> None:
        for size in graphs:
            measured.extend(measure(size, widths, num_rounds, given.dgl_python))

    others = others_share(all_graphs)
    show(measured, machine, others)
    write(given.json, goals_of(measured, graphs, widths), rows_of(measured, machine, others))


if __name__ == "__main__":
    main()

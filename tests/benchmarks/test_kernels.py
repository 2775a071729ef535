"""The ratios and goals of the kernels' benchmark, and that its contestants compute the same sums."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from benchmarks import kernel_contestants as contestants
from benchmarks.kernels import Limits, Measured, goals_of, in_turns, parser, ratio, rows_of
from graph_server.graph.csr import Csr, EdgeList, build

NUM_NODES = 200


def measured(kernel: str, by: str, *seconds: float, number_bytes: int = 4) -> Measured:
    return Measured("arxiv", kernel, by, 1000, 128, seconds, number_bytes)


FOUND = [
    measured("sum 128", "ours", 2e-6, 1e-6, 9e-6),
    measured("sum 128", "C", 1.9e-6),
    measured("sum 128", "DGL", 3e-6),
    measured("sum 41", "ours", 1e-6),
]


def test_a_ratio_is_of_medians_and_missing_without_one_of_the_two():
    assert ratio(FOUND, "arxiv", "sum 128", "DGL", "ours") == pytest.approx(1.5)
    assert ratio(FOUND, "arxiv", "sum 41", "DGL", "ours") is None
    assert ratio(FOUND, "reddit", "sum 128", "DGL", "ours") is None


def test_goals_without_a_value_do_not_hold():
    goals = goals_of(FOUND, ("arxiv", "reddit"), (41, 128, 602))
    assert {name: goal.value is not None and goal.holds for name, goal in goals.items()} == {
        "arxiv, sum 41: ours over C": False,
        "arxiv, sum 128: ours over C": True,
        "arxiv, sum 128: DGL over ours": True,
        "reddit, sum 41: ours over C": False,
        "reddit, sum 128: ours over C": False,
        "reddit, sum 128: DGL over ours": False,
        "reddit, sum 128: DGL over ours, bfloat16": False,
    }


def test_rates_are_of_rows_read_and_shares_of_the_machines():
    ours, *_ = rows_of(FOUND, Limits(gigabytes=512.0, gigaflops=128.0), others=0.25)
    assert ours["gigabytes_per_second"] == pytest.approx(1000 * 128 * 4 / 2e-6 / 1e9)
    assert ours["of_memory_bandwidth"] == pytest.approx(0.5)
    assert ours["of_peak_additions"] == pytest.approx(0.5)
    assert ours["times_ours"] == 1


def test_contestants_take_turns_and_the_first_round_does_not_count():
    order: list[str] = []

    def run(name: str):
        def once() -> float:
            order.append(name)
            return float(len(order))

        return once

    found = in_turns({"a": run("a"), "slow": run("slow"), "none": None, "b": run("b")}, 2, once=("slow",))
    assert sorted(order[:2]) == sorted(order[-2:]) == ["a", "b"]
    assert sorted(order[2:-2]) == ["a", "b", "slow"]
    assert {name: len(seconds) for name, seconds in found.items()} == {"a": 2, "slow": 1, "b": 2}
    assert sorted(number for seconds in found.values() for number in seconds) == [3, 4, 5, 6, 7]


@pytest.fixture(scope="module")
def csr() -> Csr:
    sources, targets = np.random.default_rng(0).integers(0, NUM_NODES, (2, 3000))
    return build(EdgeList(sources, targets, NUM_NODES))


@pytest.mark.parametrize("width", [5, 41])
def test_all_contestants_compute_the_same_sum(csr, width, tmp_path, monkeypatch):
    outs: list[np.ndarray] = []
    zeros = contestants.aligned.zeros

    def noted(shape, dtype):
        outs.append(zeros(shape, dtype))
        return outs[-1]

    monkeypatch.setattr(contestants.aligned, "zeros", noted)
    with ThreadPoolExecutor(2) as threads:
        for name, run in contestants.sums(contestants.OnAllCores(csr, threads), width, tmp_path).items():
            if run is None:
                assert name == "C"
                assert shutil.which("gcc") is None
                continue
            table, out = outs[0], outs[-1]
            out[:] = np.nan
            assert run() > 0
            exact = np.zeros(out.shape)
            np.add.at(exact, np.repeat(np.arange(NUM_NODES), np.diff(csr.indptr)), table[csr.indices].astype(float))
            assert np.allclose(
                out, exact, rtol=0.02 if "bfloat16" in name else 1e-4, atol=0.1 if "bfloat16" in name else 1e-4
            )


def test_without_a_python_that_has_dgl_there_is_none(tmp_path: Path):
    with contestants.dgl_kernels(tmp_path / "python", tmp_path / "graph.npz") as dgl:
        assert dgl is None


def test_flags():
    given = parser().parse_args(["--quick", "--graphs", "small", "--dgl-python", "somewhere/python"])
    assert given.graphs == ["small"]
    assert given.dgl_python == Path("somewhere/python")

"""Attention: forward and backward against a dense float64 softmax and, bit by bit, a plain float32 loop."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from common.saga.masks import attention_key, scale, threshold
from graph_server.graph import attention_kernels as kernels
from graph_server.graph.csr import Csr, EdgeList, build, has_self_loop, transpose

SHAPES = [(1, 1), (8, 8), (3, 5), (9, 2), (1, 41)]
SLOPE = 0.2
RATES = [0.0, 0.6]


# ---- graphs


@dataclass
class Problem:
    """A graph with rows [z | s | t] for `shape`; loops are added where the graph has none. epochs: that the rows of so
    many intervals are of, met in epoch 1; none: all are of that."""

    edges: Csr
    shape: tuple[int, int]
    rate: float = 0.0
    spread: float = 1.0
    dtype: type = np.float64
    epochs: tuple[int, ...] = ()
    source: np.ndarray = field(init=False)
    add_loop: np.ndarray = field(init=False)

    def __post_init__(self):
        heads, d = self.shape
        rows = np.random.default_rng(3).normal(size=(self.edges.num_rows, heads * (d + 2)))
        rows[:, heads * d :] *= self.spread
        self.source, self.add_loop = rows.astype(self.dtype), ~has_self_loop(self.edges)

    @property
    def num_rows(self) -> int:
        return self.edges.num_rows

    @property
    def width(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def keys(self) -> np.ndarray:
        return self.keys_of(1)

    def keys_of(self, epoch: int) -> np.ndarray:
        return np.array([attention_key(0, epoch, 0, head) for head in range(0, self.shape[0], 8)], np.uint64)

    @property
    def dropout(self):
        return self.keys, threshold(self.rate), self.dtype(scale(self.rate))

    @property
    def ids(self) -> np.ndarray:
        """Relabelled ids that are not the rows' numbers."""
        return 100 + 3 * np.arange(self.num_rows)

    @property
    def intervals(self) -> np.ndarray:
        return (np.arange(self.num_rows) * len(self.epochs) // self.num_rows).astype(np.int16)

    def epoch(self, v: int) -> int:
        return self.epochs[self.intervals[v]] if self.epochs else 1

    @property
    def blocks(self):
        keys = np.stack([self.keys_of(epoch) for epoch in self.epochs], axis=1)
        return kernels.Blocks(keys, (np.array(self.epochs) == 1).astype(self.dtype), self.intervals)

    def kept(self, u: int, v: int, head: int) -> float:
        if not threshold(self.rate):
            return 1.0
        kept = kernels.keep(self.keys_of(self.epoch(v)), threshold(self.rate), self.ids[u], self.ids[v], head)
        return scale(self.rate) if kept else 0.0

    def in_edges(self, v: int) -> list[int]:
        return self.edges.indices[self.edges.indptr[v] : self.edges.indptr[v + 1]].tolist() + [v] * int(
            self.add_loop[v]
        )

    def forward(self, runs=None):
        heads = self.shape[0]
        table = np.ascontiguousarray(self.source[:, : self.width + heads])
        out = np.full((self.num_rows, self.width), np.nan, self.dtype)
        saved = np.full((self.num_rows, self.width + 2 * heads), np.nan, self.dtype)
        for run in runs or [(0, self.num_rows)]:
            kernels.attention_forward(
                self.edges.indptr, self.edges.indices, self.add_loop, table, self.ids,
                self.source[:, self.width + heads :], self.shape, self.dtype(SLOPE), self.dropout, out, saved, run,
            )  # fmt: skip
        return out, saved

    def backward(self, g: np.ndarray, runs=None):
        heads, d = self.shape
        out, saved = self.forward()
        dot = (g * out).reshape(self.num_rows, heads, d).sum(axis=2)
        t, lse = self.source[:, self.width + heads :], saved[:, self.width + heads :]
        table = np.hstack([g, dot, t, lse]).astype(self.dtype)
        grad = np.full_like(self.source, np.nan)
        reverse = transpose(self.edges, self.num_rows)
        dropout = (self.blocks, *self.dropout[1:]) if self.epochs else self.dropout
        for run in runs or [(0, self.num_rows)]:
            kernels.attention_backward(
                reverse.indptr, reverse.indices, self.add_loop, table, self.ids, self.source, saved,
                self.shape, self.dtype(SLOPE), dropout, grad, run,
            )  # fmt: skip
        return grad


def random_graph(num_nodes: int = 20, num_edges: int = 60) -> Csr:
    """With duplicates, explicit self loops and a vertex without any in-edge but its added loop."""
    sources, targets = np.random.default_rng(0).integers(0, num_nodes, (2, num_edges))
    targets[targets == 5] = 6
    more = np.array([[3, 3, 4, 4], [9, 9, 4, 4]])
    return build(EdgeList(np.append(sources, more[0]), np.append(targets, more[1]), num_nodes))


def dense(problem: Problem, g: np.ndarray):
    """(out, d source) by the textbook's softmax and its Jacobian, in float64, vertex by vertex and head by head."""
    heads, d = problem.shape
    source = problem.source.astype(np.float64)
    z = source[:, : problem.width].reshape(-1, heads, d)
    s, t = source[:, problem.width : problem.width + heads], source[:, problem.width + heads :]
    out, grad = np.zeros_like(z), np.zeros_like(source)
    dz = grad[:, : problem.width].reshape(-1, heads, d)
    for v in range(problem.num_rows):
        neighbours = problem.in_edges(v)
        for h in range(heads) if neighbours else ():
            x = s[neighbours, h] + t[v, h]
            e = np.where(x > 0, x, SLOPE * x)
            probability = np.exp(e - e.max()) / np.exp(e - e.max()).sum()
            m = np.array([problem.kept(u, v, h) for u in neighbours])
            out[v, h] = (probability * m) @ z[neighbours, h]
            gv = g.reshape(-1, heads, d)[v, h]
            dp = m * (z[neighbours, h] @ gv)
            dx = probability * (dp - probability @ dp) * np.where(x > 0, 1, SLOPE)
            np.add.at(dz[:, h], neighbours, (probability * m)[:, None] * gv)
            np.add.at(grad[:, problem.width + h], neighbours, dx)
            grad[v, problem.width + heads + h] += dx.sum()
    return out.reshape(problem.num_rows, -1), grad


def gradient_of(problem: Problem) -> np.ndarray:
    return np.random.default_rng(4).normal(size=(problem.num_rows, problem.width)).astype(problem.dtype)


def check_against_dense(problem: Problem, tolerance: float) -> None:
    g = gradient_of(problem)
    out, grad = dense(problem, g)
    assert np.allclose(problem.forward()[0], out, rtol=tolerance, atol=tolerance)
    assert np.allclose(problem.backward(g), grad, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
def test_forward_and_backward_against_a_dense_softmax(shape, rate, dtype, tolerance):
    check_against_dense(Problem(random_graph(), shape, rate, dtype=dtype), tolerance)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_spread_over_hundreds_stay_finite(rate, dtype):
    problem = Problem(random_graph(), (3, 5), rate, spread=100.0, dtype=dtype)
    scores = problem.source[:, 15:18]
    assert scores.max() > 200
    assert scores.min() < -200
    check_against_dense(problem, 1e-12 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_stale_rows_that_disagree_stay_finite(dtype):
    """A logsumexp far below the scores it should contain: a probability is at most 1."""
    problem = Problem(random_graph(), (2, 3), dtype=dtype)
    _, saved = problem.forward()
    table = np.zeros((20, 6 + 6), dtype)
    table[:, :8], table[:, 10:] = 1, -1000
    grad = np.empty_like(problem.source)
    kernels.attention_backward(
        problem.edges.indptr, problem.edges.indices, problem.add_loop, table, problem.ids, problem.source, saved,
        (2, 3), dtype(SLOPE), problem.dropout, grad, (0, 20),
    )  # fmt: skip
    degree = np.diff(problem.edges.indptr) + problem.add_loop
    assert np.isfinite(grad).all()
    assert np.array_equal(grad[:, 0], degree.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_hub_with_ten_thousand_neighbours(dtype):
    count = 10_000
    hub = build(EdgeList(np.arange(1, count + 1), np.zeros(count, np.int64), count + 1))
    problem = Problem(hub, (2, 3), 0.5, dtype=dtype)
    problem.add_loop[:] = False
    _, saved = problem.forward()
    s, t = problem.source[1:, 6:8].astype(np.float64), problem.source[0, 8:].astype(np.float64)
    x = s + t
    e = np.where(x > 0, x, SLOPE * x)
    assert np.allclose(saved[0, 8:], np.log(np.exp(e).sum(axis=0)), rtol=1e-4)
    check_against_dense(problem, 1e-10 if dtype is np.float64 else 1e-3)


def test_one_neighbour_gets_all_attention():
    problem = Problem(build(EdgeList(np.array([0, 1]), np.array([1, 1]), 2)), (2, 3))
    alone = Problem(build(EdgeList(np.array([0]), np.array([0]), 2)), (2, 3))
    assert np.allclose(alone.forward()[0], alone.source[:, :6], rtol=1e-15)
    check_against_dense(problem, 1e-13)


def test_no_edges_at_all():
    """Added self loops make each vertex its own neighbour; without them it gathers 0 and gives no gradient."""
    none = build(EdgeList(np.zeros(0, np.int64), np.zeros(0, np.int64), 4))
    problem = Problem(none, (2, 3))
    assert np.array_equal(problem.forward()[0], problem.source[:, :6])
    problem.add_loop[:] = False
    out, saved = problem.forward()
    assert not out.any()
    assert not saved.any()
    assert not problem.backward(gradient_of(problem)).any()


def pairs(*edges: tuple[int, int], num_nodes: int) -> Csr:
    sources, targets = np.array(edges).T
    return build(EdgeList(sources, targets, num_nodes))


def test_an_explicit_self_loop_is_not_doubled():
    explicit = Problem(pairs((0, 1), (1, 1), (0, 0), num_nodes=2), (2, 3))
    implicit = Problem(pairs((0, 1), num_nodes=2), (2, 3))
    assert explicit.add_loop.tolist() == [False, False]
    assert implicit.add_loop.tolist() == [True, True]
    assert np.allclose(explicit.forward()[0], implicit.forward()[0], rtol=1e-15)


def test_a_duplicate_edge_counts_twice():
    problem = Problem(pairs((0, 2), (0, 2), (1, 2), num_nodes=3), (1, 2))
    problem.source[:, 2:] = 0  # all scores are equal
    problem.add_loop[:] = False
    z = problem.source[:, :2]
    assert np.allclose(problem.forward()[0][2], (2 * z[0] + z[1]) / 3, rtol=1e-15)
    check_against_dense(problem, 1e-13)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_any_split_into_runs_gives_the_same_bits(shape, rate):
    problem = Problem(random_graph(), shape, rate, dtype=np.float32)
    runs = [(13, 20), (0, 1), (1, 13), (4, 4)]
    g = gradient_of(problem)
    for whole, split in zip(
        (*problem.forward(), problem.backward(g)), (*problem.forward(runs), problem.backward(g, runs)), strict=True
    ):
        assert np.array_equal(whole, split)


# ---- every step is one float32 operation, in the order written here


def plain_forward(problem: Problem):
    """The kernel's arithmetic in NumPy's float32 numbers."""
    (heads, d), f = problem.shape, np.float32
    hd, slope = problem.width, f(SLOPE)
    out = np.zeros((problem.num_rows, hd), f)
    saved = np.zeros((problem.num_rows, hd + 2 * heads), f)
    for v in range(problem.num_rows):
        for h in range(heads):
            s, t = problem.source[:, hd + h], problem.source[v, hd + heads + h]
            x = max(s[u] for u in problem.in_edges(v)) + t
            top, total = x if x > 0 else x * slope, f(0)
            columns = range(h * d, h * d + d)
            for u in problem.in_edges(v):
                x = s[u] + t
                a = kernels.exp((x if x > 0 else x * slope) - top)
                p, m = a if x > 0 else a * slope, f(problem.kept(u, v, h))
                total += a
                saved[v, hd + h] += p
                for k in columns:
                    out[v, k] += (a * m) * problem.source[u, k]
                    saved[v, k] += (p * m) * problem.source[u, k]
            inverse = f(1) / total
            saved[v, hd + h] *= inverse
            saved[v, hd + heads + h] = top + kernels.log(total)
            for k in columns:
                out[v, k] *= inverse
                saved[v, k] *= inverse
    return out, saved


def plain_backward(problem: Problem, g: np.ndarray):
    (heads, d), f = problem.shape, np.float32
    hd, slope = problem.width, f(SLOPE)
    out, saved = problem.forward()
    dots = (g * out).reshape(problem.num_rows, heads, d).sum(axis=2)
    reverse, grad = transpose(problem.edges, problem.num_rows), np.zeros_like(problem.source)
    for u in range(problem.num_rows):
        readers = reverse.indices[reverse.indptr[u] : reverse.indptr[u + 1]].tolist() + [u] * int(problem.add_loop[u])
        for h in range(heads):
            columns = range(h * d, h * d + d)
            second, dot = np.zeros(hd, f), f(0)
            for v in readers:
                x = problem.source[u, hd + h] + problem.source[v, hd + heads + h]
                a = kernels.exp(min((x if x > 0 else x * slope) - saved[v, hd + heads + h], f(0)))
                p, m = a if x > 0 else a * slope, f(problem.kept(u, v, h))
                p *= f(problem.epoch(v) == 1)
                dot += p * dots[v, h]
                for k in columns:
                    grad[u, k] += (a * m) * g[v, k]
                    second[k] += (p * m) * g[v, k]
            ds, dt = -dot, -dots[u, h] * saved[u, hd + h]
            for k in columns:
                ds += problem.source[u, k] * second[k]
                dt += g[u, k] * saved[u, k]
            grad[u, hd + h], grad[u, hd + heads + h] = ds, dt
    return grad


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", RATES)
def test_the_bits_are_those_of_a_plain_float32_loop(shape, rate):
    """Neither widened to float64, nor regrouped, nor fused into one multiply-add."""
    problem = Problem(random_graph(12, 30), shape, rate, dtype=np.float32)
    g = gradient_of(problem)
    out, saved = plain_forward(problem)
    assert np.array_equal(problem.forward()[0], out)
    assert np.array_equal(problem.forward()[1], saved)
    assert np.array_equal(problem.backward(g), plain_backward(problem, g))


@pytest.mark.parametrize("rate", RATES)
def test_rows_of_another_epoch_have_the_masks_of_that_epoch_and_no_gradient_of_scores(rate):
    stale = Problem(random_graph(12, 30), (9, 2), rate, dtype=np.float32, epochs=(1, 0, 2))
    g, z, s = gradient_of(stale), slice(18), slice(18, 27)
    grad, as_if_fresh = stale.backward(g), replace(stale, epochs=()).backward(g)
    assert np.array_equal(grad, plain_backward(stale, g))
    assert np.array_equal(grad[:, z], as_if_fresh[:, z]) == (rate == 0)
    assert not np.array_equal(grad[:, s], as_if_fresh[:, s])
    assert np.array_equal(replace(stale, epochs=(1, 1, 1)).backward(g), as_if_fresh)


# ---- heads in groups


@pytest.mark.parametrize("shape", [*SHAPES, (8, 16), (8, 17), (12, 3), (16, 8), (2, 64), (2, 200), (1, 256)])
def test_the_groups_cover_every_column_once(shape):
    heads, d = shape
    found = [
        head * d + group.first_column + column
        for group in kernels.groups(heads, d)
        for head in range(group.first_head, group.first_head + group.heads)
        for column in range(group.width)
    ]
    assert sorted(found) == list(range(heads * d))
    for group in kernels.groups(heads, d):
        assert group.heads * group.width <= kernels.COLUMNS
        assert group.first_head // 8 == (group.first_head + group.heads - 1) // 8
        assert group.width == d or group.heads == 1


@pytest.mark.parametrize("shape", [(8, 17), (12, 3), (16, 8), (1, 129), (2, 200)])
def test_wide_heads_and_many_heads_give_the_bits_of_the_plain_loop(shape):
    problem = Problem(random_graph(8, 20), shape, 0.6, dtype=np.float32)
    g = gradient_of(problem)
    out, saved = plain_forward(problem)
    assert np.array_equal(problem.forward()[0], out)
    assert np.array_equal(problem.forward()[1], saved)
    assert np.array_equal(problem.backward(g), plain_backward(problem, g))


def test_a_hub_with_a_hundred_thousand_neighbours_and_scores_of_hundreds():
    count, heads, d = 100_000, 2, 3
    hub = build(EdgeList(np.arange(1, count + 1), np.zeros(count, np.int64), count + 1))
    problem = Problem(hub, (heads, d), spread=100.0, dtype=np.float32)
    assert np.abs(problem.source[:, heads * d :]).max() > 400
    out, saved = problem.forward()
    source = problem.source.astype(np.float64)
    x = source[:, 6:8] + source[0, 8:]
    e = np.where(x > 0, x, SLOPE * x)
    probability = np.exp(e - e.max(axis=0))
    assert np.allclose(saved[0, 8:], np.log(probability.sum(axis=0)) + e.max(axis=0), rtol=1e-5)
    expected = np.einsum("uh,uhk->hk", probability / probability.sum(axis=0), source[:, :6].reshape(-1, heads, d))
    assert np.allclose(out[0], expected.reshape(-1), rtol=1e-4, atol=1e-4)


def test_runs_on_many_threads_give_the_same_bits():
    problem = Problem(random_graph(), (8, 8), 0.6, dtype=np.float32)
    g = gradient_of(problem)
    runs = [(v, v + 1) for v in range(problem.num_rows)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: (*problem.forward(runs), problem.backward(g, runs)), range(8)))
    for out, saved, grad in found:
        assert np.array_equal(out, problem.forward()[0])
        assert np.array_equal(saved, problem.forward()[1])
        assert np.array_equal(grad, problem.backward(g))

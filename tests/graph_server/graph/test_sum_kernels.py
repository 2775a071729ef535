"""Weighted sums: right against scipy in float64, and to the bit the plain loop that adds one edge after the other."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse

from common.saga.gathers import AttentionSum, WeightedSum
from graph_server.graph.bfloat16 import from_bfloat16, to_bfloat16
from graph_server.graph.csr import Csr, EdgeList, build, has_self_loop, in_degree, transpose
from graph_server.graph.factors import factors
from graph_server.graph.sum_kernels import weighted_sum

WIDTHS = [1, 2, 3, 7, 16, 17, 64, 130]
NORMS = ["sym", "mean", "sum"]
NUM_NODES = 30


@pytest.fixture(scope="module")
def edges() -> Csr:
    """Directed, with duplicates, explicit self loops, a hub that reads everybody, and a vertex without in-edges."""
    random = np.random.default_rng(0)
    sources, targets = random.integers(0, NUM_NODES, (2, 90))
    targets[targets == 5] = 6
    sources, targets = np.append(sources, np.arange(NUM_NODES)), np.append(targets, np.full(NUM_NODES, 7))
    sources, targets = np.append(sources, [3, 3, 4, 4]), np.append(targets, [9, 9, 4, 4])
    return build(EdgeList(sources, targets, NUM_NODES))


def gathered(edges: Csr, table, post, *, add_loop=None, runs=None):
    out = np.full((edges.num_rows, table.shape[1]), np.nan, table.dtype)
    loops = np.zeros(edges.num_rows, np.bool_) if add_loop is None else add_loop
    for run in runs or [(0, edges.num_rows)]:
        weighted_sum(edges.indptr, edges.indices, loops, table, post, out, run)
    return out


def table_of(width: int, dtype) -> np.ndarray:
    """Values of very different size, so that another order of adding gives other bits."""
    random = np.random.default_rng(1)
    return (random.normal(size=(NUM_NODES, width)) * 10.0 ** random.integers(-3, 4, (NUM_NODES, 1))).astype(dtype)


def plain_sum(edges: Csr, table, post, add_loop) -> np.ndarray:
    """Float32 numbers, one after the other."""
    out = np.zeros((edges.num_rows, table.shape[1]), np.float32)
    for v in range(edges.num_rows):
        neighbours = edges.indices[edges.indptr[v] : edges.indptr[v + 1]].tolist() + [v] * bool(add_loop[v])
        for k in range(table.shape[1]):
            total = np.float32(0)
            for u in neighbours:
                total = total + table[u, k]
            out[v, k] = total * post[v]
    return out


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("self_loops", [False, True])
def test_forward_and_backward_against_scipy(edges, width, norm, self_loops):
    """The matrix of n_uv, built from the definition, times the rows; backward its transpose."""
    add_loop = ~has_self_loop(edges) & self_loops
    ones = np.ones(len(edges.indices))
    matrix = scipy.sparse.csr_array((ones, edges.indices, edges.indptr), shape=(NUM_NODES, NUM_NODES)).toarray()
    matrix += np.diag(add_loop.astype(float))
    degree = matrix.sum(axis=1)
    inverse = np.divide(1, degree, out=np.zeros(NUM_NODES), where=degree > 0)
    if norm == "sym":
        matrix *= np.sqrt(inverse)[:, None] * np.sqrt(inverse)[None, :]
    elif norm == "mean":
        matrix *= inverse[:, None]

    found = factors(WeightedSum(norm, self_loops), in_degree(edges), add_loop, np.float64)
    rows = table_of(width, np.float64)
    ahead = gathered(edges, rows * found.pre, found.post[:, 0], add_loop=add_loop)
    assert np.allclose(ahead, scipy.sparse.csr_array(matrix) @ rows, rtol=1e-12, atol=1e-9)
    behind = gathered(transpose(edges, NUM_NODES), rows * found.post, found.pre[:, 0], add_loop=add_loop)
    assert np.allclose(behind, scipy.sparse.csr_array(matrix.T) @ rows, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_order_of_additions_is_the_order_of_the_edges(edges, width):
    table, add_loop = table_of(width, np.float32), ~has_self_loop(edges)
    post = np.random.default_rng(2).random(NUM_NODES).astype(np.float32)
    assert np.array_equal(gathered(edges, table, post, add_loop=add_loop), plain_sum(edges, table, post, add_loop))


def test_another_order_would_be_seen(edges):
    """The test above can fail: the same edges backwards give other bits."""
    table, post = table_of(16, np.float32), np.ones(NUM_NODES, np.float32)
    backwards = [edges.indices[a:b][::-1] for a, b in zip(edges.indptr, edges.indptr[1:], strict=False)]
    regrouped = gathered(Csr(edges.indptr, np.concatenate(backwards)), table, post)
    assert not np.array_equal(regrouped, gathered(edges, table, post))


@pytest.mark.parametrize("width", WIDTHS)
def test_any_split_into_runs_gives_the_same_bits(edges, width):
    table, post = table_of(width, np.float32), np.ones(NUM_NODES, np.float32)
    whole = gathered(edges, table, post)
    for seed in range(5):
        ends = np.unique(np.random.default_rng(seed).integers(1, NUM_NODES, 6)).tolist()
        runs = list(zip([0, *ends], [*ends, NUM_NODES], strict=True))
        assert np.array_equal(gathered(edges, table, post, runs=runs[::-1]), whole)


def test_a_run_writes_its_own_rows_only(edges):
    out = gathered(edges, table_of(3, np.float32), np.ones(NUM_NODES, np.float32), runs=[(4, 9), (20, 20)])
    written = ~np.isnan(out).any(axis=1)
    assert np.flatnonzero(written).tolist() == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_may_lie_apart(edges, width):
    table, post = table_of(width, np.float32), np.ones(NUM_NODES, np.float32)
    apart = np.full((NUM_NODES, width + 5), np.nan, np.float32)[:, :width]
    apart[:] = table
    assert np.array_equal(gathered(edges, apart, post), gathered(edges, table, post))


def test_columns_may_be_rows_of_a_longer_table(edges):
    """Ghost rows stand behind the own ones."""
    table, post = table_of(3, np.float32), np.ones(NUM_NODES, np.float32)
    longer = np.concatenate([np.full_like(table, 1e30), table])
    moved = Csr(edges.indptr, edges.indices + NUM_NODES)
    assert np.array_equal(gathered(moved, longer, post), gathered(edges, table, post))


# ---- wide rows, weights of edges, bfloat16, threads


def row_by_row(edges: Csr, table, post, add_loop, weights=None) -> np.ndarray:
    """Float32 rows, one after the other; each lane is a sum of its own."""
    out = np.zeros((edges.num_rows, table.shape[1]), np.float32)
    for v in range(edges.num_rows):
        for e in range(edges.indptr[v], edges.indptr[v + 1]):
            row = table[edges.indices[e]]
            out[v] += row if weights is None else row * weights[e]
        if add_loop[v]:
            out[v] += table[v]
        out[v] *= post[v]
    return out


@pytest.mark.parametrize("width", [1, 5, 41, 47, 127, 128, 129, 250, 256, 602, 2048])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rounded", [False, True])
def test_every_path_gives_the_bits_of_rows_added_in_order(edges, width, weighted, rounded):
    random = np.random.default_rng(3)
    table, add_loop = table_of(width, np.float32), ~has_self_loop(edges)
    post = random.random(NUM_NODES).astype(np.float32)
    weights = random.normal(size=len(edges.indices)).astype(np.float32) if weighted else None
    stored = to_bfloat16(table) if rounded else table
    out = np.full((NUM_NODES, width), np.nan, np.float32)
    weighted_sum(edges.indptr, edges.indices, add_loop, stored, post, out, (0, NUM_NODES), weights)
    read = from_bfloat16(stored) if rounded else table
    assert np.array_equal(out, row_by_row(edges, read, post, add_loop, weights))


def test_a_weight_is_multiplied_and_rounded_before_the_row_is_added(edges):
    """Fused into one rounding, the sums would have other bits."""
    table, ones = table_of(16, np.float32), np.ones(NUM_NODES, np.float32)
    no_loops = np.zeros(NUM_NODES, np.bool_)
    weights = np.random.default_rng(3).normal(size=len(edges.indices)).astype(np.float32)
    fused = np.zeros((NUM_NODES, 16), np.float32)
    for v in range(NUM_NODES):
        for e in range(edges.indptr[v], edges.indptr[v + 1]):
            fused[v] = (fused[v] + table[edges.indices[e]].astype(np.float64) * weights[e]).astype(np.float32)
    assert not np.array_equal(fused, row_by_row(edges, table, ones, no_loops, weights))


def test_runs_on_many_threads_give_the_same_bits(edges):
    table, post = table_of(41, np.float32), np.ones(NUM_NODES, np.float32)
    no_loops, out = np.zeros(NUM_NODES, np.bool_), np.full((NUM_NODES, 41), np.nan, np.float32)
    with ThreadPoolExecutor(4) as threads:
        for v in range(NUM_NODES):
            threads.submit(weighted_sum, edges.indptr, edges.indices, no_loops, table, post, out, (v, v + 1))
    assert np.array_equal(out, gathered(edges, table, post))


# ---- factors


def degrees(*in_degree: int, loops: tuple[bool, ...]):
    return np.array(in_degree), np.array(loops)


def test_sym_is_the_root_of_the_in_degree_on_both_sides():
    found = factors(WeightedSum("sym", self_loops=True), *degrees(3, 4, 1, loops=(True, False, True)), np.float64)
    assert np.allclose(found.pre[:, 0], [0.5, 0.5, 0.5**0.5], rtol=1e-15)
    assert np.array_equal(found.pre, found.post)


def test_mean_divides_by_the_in_degree_of_the_target():
    found = factors(WeightedSum("mean"), *degrees(1, 2, 4, loops=(False,) * 3), np.float64)
    assert found.pre[:, 0].tolist() == [1, 1, 1]
    assert found.post[:, 0].tolist() == [1, 0.5, 0.25]


@pytest.mark.parametrize("gather", [WeightedSum("sum"), AttentionSum(2, 3)])
def test_sums_have_no_factors(gather):
    found = factors(gather, *degrees(0, 2, loops=(False, False)), np.float32)
    assert found.pre[:, 0].tolist() == found.post[:, 0].tolist() == [1, 1]


@pytest.mark.parametrize("norm", ["sym", "mean"])
def test_degree_zero_has_factor_zero(norm):
    found = factors(WeightedSum(norm), *degrees(0, 1, loops=(False, False)), np.float32)
    assert found.post[:, 0].tolist() == [0, 1]
    assert found.pre[0, 0] == (0 if norm == "sym" else 1)
    with_loop = factors(WeightedSum(norm, self_loops=True), *degrees(0, 1, loops=(True, False)), np.float32)
    assert with_loop.post[:, 0].tolist() == [1, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_are_rounded_once(dtype):
    found = factors(WeightedSum("sym"), *degrees(*range(1, 100), loops=(False,) * 99), dtype)
    assert found.pre.dtype == dtype
    assert np.array_equal(found.pre[:, 0], (1 / np.sqrt(np.arange(1.0, 100))).astype(dtype))

"""Async in any order of events: stale by at most s, no standstill, every epoch of every interval ends; and whatever the
mode, a cluster that is killed goes on from its checkpoint, in pipe and sync to the same bits.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cluster.simulated_cluster import Layout, Outcome, simulate
from tests.cluster.small_jobs import MODELS, SHAPES, SmallJob
from tests.cluster.test_event_orders import in_plain_order  # noqa: F401  a fixture
from tests.examples import examples

Jobs = Callable[[int, str], SmallJob]

numbers = st.integers(0, len(SHAPES) - 1)
async_layouts = st.builds(
    Layout,
    num_graph_servers=st.integers(1, 4),
    num_parameter_servers=st.integers(1, 3),
    mode=st.just("async"),
    staleness=st.integers(0, 3),
    weight_update=st.sampled_from(("epoch", "interval")),
    gradient_window=st.sampled_from((None, None, 1, 2, 3)),
    kills=st.sampled_from((0, 0, 1, 2)),
    seed=st.integers(0, 2**32 - 1),
)
killed_layouts = st.builds(
    Layout,
    num_graph_servers=st.integers(1, 4),
    num_parameter_servers=st.integers(1, 2),
    mode=st.sampled_from(("pipe", "sync")),
    gradient_window=st.sampled_from((None, None, 1, 2)),
    kills=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=examples(240) // len(MODELS), suppress_health_check=[HealthCheck.too_slow])
@given(number=numbers, layout=async_layouts)
def test_no_row_is_staler_than_allowed_and_every_epoch_ends(long_jobs: Jobs, model: str, number: int, layout: Layout):
    job = long_jobs(number, model)
    outcome = simulate(job, layout)
    assert [metrics.epoch for metrics in outcome.metrics] == list(range(1, job.num_epochs + 1))
    assert max(outcome.reads, default=0) <= 1 + layout.staleness


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=examples(160) // len(MODELS), suppress_health_check=[HealthCheck.too_slow])
@given(number=numbers, layout=killed_layouts)
def test_a_killed_cluster_ends_with_the_same_bits(
    jobs: Jobs,
    in_plain_order: Callable[[int, str], Outcome],  # noqa: F811
    model: str,
    number: int,
    layout: Layout,
):
    assert simulate(jobs(number, model), layout) == in_plain_order(number, model)


def test_rows_are_as_stale_as_allowed_ahead_and_exact_too(long_jobs: Jobs):
    """Else the bound would prove nothing."""
    for staleness in (0, 1):
        reads = Counter[int]()
        for seed in range(12):
            layout = Layout(3, 2, mode="async", staleness=staleness, seed=seed)
            reads += simulate(long_jobs(2, "gcn"), layout).reads
        assert max(reads) == 1 + staleness
        assert reads[0]
        assert (min(reads) < 0) == (staleness > 0)


def test_clusters_are_killed(jobs: Jobs):
    generations = {simulate(jobs(2, "gcn"), Layout(3, kills=2, seed=seed)).generations for seed in range(12)}
    assert {2, 3} <= generations

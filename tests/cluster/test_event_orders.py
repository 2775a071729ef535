"""Any order of events gives the same bits: many graph servers, with repeats and losses, against one in plain order."""

from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cluster.simulated_cluster import Layout, Outcome, simulate
from tests.cluster.small_jobs import MODELS, SHAPES, SmallJob
from tests.examples import examples

Jobs = Callable[[int, str], SmallJob]

numbers = st.integers(0, len(SHAPES) - 1)
layouts = st.builds(
    Layout,
    num_graph_servers=st.integers(1, 4),
    num_parameter_servers=st.integers(1, 2),
    mode=st.sampled_from(("pipe", "sync")),
    seed=st.integers(0, 2**32 - 1),
)


@pytest.fixture(scope="session")
def in_plain_order(jobs: Jobs) -> Callable[[int, str], Outcome]:
    return cache(lambda number, model: simulate(jobs(number, model), Layout()))


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=examples(2000) // len(MODELS), suppress_health_check=[HealthCheck.too_slow])
@given(number=numbers, layout=layouts)
def test_no_order_of_events_changes_a_bit(
    jobs: Jobs, in_plain_order: Callable[[int, str], Outcome], model: str, number: int, layout: Layout
):
    assert simulate(jobs(number, model), layout) == in_plain_order(number, model)


@pytest.mark.parametrize("model", MODELS)
def test_the_reference_trains(in_plain_order: Callable[[int, str], Outcome], model: str):
    """Else equal bits would mean little."""
    outcomes = [in_plain_order(number, model) for number in range(len(SHAPES))]
    losses = [metrics.loss for outcome in outcomes for metrics in outcome.metrics]
    assert len(set(losses)) == len(losses)
    assert len({outcome.logits for outcome in outcomes}) == len(SHAPES)


def test_the_pool_has_ghosts_empty_intervals_and_graph_servers_without_any(jobs: Jobs):
    pool = [jobs(number, "gcn") for number in range(len(SHAPES))]
    spread = [job.partitions(4) for job in pool]
    assert all(sum(partition.in_edges.num_ghosts for partition in partitions) for partitions in spread)
    assert any(not partition.own for partitions in spread for partition in partitions)
    assert any((job.folder.bounds[1:] == job.folder.bounds[:-1]).any() for job in pool)
    assert {job.folder.manifest.symmetric for job in pool} == {True, False}

"""Deliberate defects: the comparison of test_event_orders.py must find each of them, or it proves nothing."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from common.errors import DorylusError, ScheduleError
from common.passes import Pass
from common.saga.arrays import Array
from graph_server.graph.tensor_store import TensorStore
from graph_server.schedule.arrivals import Arrivals
from graph_server.schedule.events import StageDone
from graph_server.schedule.scheduler import Scheduler
from parameter_server import weight_store
from parameter_server.epoch_gate import EpochGate
from parameter_server.gradient_gate import GradientGate
from parameter_server.interval_store import IntervalWeightStore
from parameter_server.tree_sum import TreeSum
from parameter_server.weight_store import GradientKey, WeightStore
from tests.cluster.simulated_cluster import Layout, Outcome, simulate
from tests.cluster.small_jobs import SmallJob

GRAPHS = (2, 4, 8)
SEEDS = 40
"""Orders of events that are tried on each graph."""

Patch = pytest.MonkeyPatch


# ---- the defects


def an_old_ghost_is_accepted(patch: Patch) -> None:
    """An older pass overwrites a newer one."""

    def accept(store: TensorStore, pass_: Pass, table: str, interval: int, block: Array) -> bool:
        if (place := store.ghost_block(table, interval)) is not None:
            store.array(pass_, table)[place] = block
        return True

    patch.setattr(TensorStore, "accept_ghosts", accept)


def ghosts_are_added_up(patch: Patch) -> None:
    accept = TensorStore.accept_ghosts

    def accept_more(store: TensorStore, pass_: Pass, table: str, interval: int, block: Array) -> bool:
        place = store.ghost_block(table, interval)
        before = None if place is None else store.array(pass_, table)[place].copy()
        accepted = accept(store, pass_, table, interval, block)
        if accepted and before is not None:
            store.array(pass_, table)[place] += before
        return accepted

    patch.setattr(TensorStore, "accept_ghosts", accept_more)


def rows_of_any_pass_count_as_arrived(patch: Patch) -> None:
    add, complete, first = Arrivals.add, Arrivals.complete, Pass(1, 0, 0)  # type: ignore[arg-type]
    patch.setattr(Arrivals, "add", lambda arrivals, pass_, table, interval: add(arrivals, first, table, interval))
    patch.setattr(Arrivals, "complete", lambda arrivals, pass_, table, i: complete(arrivals, first, table, i))
    patch.setattr(Arrivals, "forget_before", lambda arrivals, pass_: None)


def a_gather_starts_one_feed_early(patch: Patch) -> None:
    def complete(arrivals: Any, pass_: Pass, table: str, interval: int) -> bool:
        missing = arrivals._missing.get((pass_, table), arrivals._num_feeds)
        return bool(missing[arrivals._place[interval]] <= 1)

    patch.setattr(Arrivals, "complete", complete)


def a_gradient_is_dropped(patch: Patch) -> None:
    """It counts, but is not added."""
    add = TreeSum.add
    patch.setattr(
        TreeSum, "add", lambda tree, leaf, value: add(tree, leaf, np.zeros_like(value) if leaf == 2 else value)
    )


class FoldInOrderOfArrival(TreeSum):
    """A sum without the tree: ((a + b) + c) + d, as they come."""

    def __init__(self, num_leaves: int) -> None:
        super().__init__(num_leaves)
        self._sum: Any = 0.0

    def add(self, leaf: int, value: Any) -> bool:
        self._sum = self._sum + np.asarray(value, np.float64)
        return super().add(leaf, value)

    def total(self) -> Array:
        return np.asarray(self._sum, np.float64)


class RepeatsCount(FoldInOrderOfArrival):
    """A repeated gradient is one more gradient."""

    def __contains__(self, leaf: int) -> bool:
        return False


def a_sum_is_regrouped(patch: Patch) -> None:
    patch.setattr(weight_store, "TreeSum", FoldInOrderOfArrival)


def a_repeated_gradient_counts_twice(patch: Patch) -> None:
    patch.setattr(weight_store, "TreeSum", RepeatsCount)


def a_repeated_result_is_taken_again(patch: Patch) -> None:
    """Outputs of any attempt overwrite the interval's rows, whatever it does now."""
    accepts, accept = Scheduler.accepts, Scheduler._accept

    def accept_first_only(scheduler: Scheduler, event: StageDone) -> bool:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Scheduler, "accepts", accepts)
            return accept(scheduler, event)

    patch.setattr(Scheduler, "accepts", lambda scheduler, event: True)
    patch.setattr(Scheduler, "_accept", accept_first_only)


def own_rows_are_added_to_a_table(patch: Patch) -> None:
    """A Scatter adds instead of overwriting."""
    publish = TensorStore.publish

    def publish_more(store: TensorStore, pass_: Pass, table: str, interval: int, block: Array) -> None:
        publish(store, pass_, table, interval, store.rows(pass_, table, interval) + block)

    patch.setattr(TensorStore, "publish", publish_more)


# ---- of async and of restarts


def a_read_gate_opens_an_epoch_early(patch: Patch) -> None:
    complete = Arrivals.complete

    def complete_before(arrivals: Arrivals, pass_: Pass, table: str, interval: int) -> bool:
        early = Pass(pass_.epoch - 1, pass_.kind, pass_.weights_version)
        return pass_.epoch == 1 or complete(arrivals, early, table, interval)

    patch.setattr(Arrivals, "complete", complete_before)


def an_epoch_gate_opens_an_epoch_early(patch: Patch) -> None:
    begin = EpochGate.begin

    def begin_early(gate: EpochGate, candidates: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(gate, "_staleness", gate._staleness + 1)
            return begin(gate, candidates)

    patch.setattr(EpochGate, "begin", begin_early)


def a_stash_is_released_early(patch: Patch) -> None:
    """Two versions fewer: one is spare."""
    stashed = WeightStore._stashed
    patch.setattr(WeightStore, "_stashed", lambda store: set(sorted(stashed(store))[2:]))


def a_pin_is_forgotten(patch: Patch) -> None:
    patch.setattr(IntervalWeightStore, "_stashed", lambda store: {store._version - 1, store._version})


def a_generation_is_ignored(patch: Patch) -> None:
    push = WeightStore.push

    def push_any(store: WeightStore, key: GradientKey, gradient: Array) -> Any:
        return push(store, msgspec.structs.replace(key, generation=store._generation), gradient)

    patch.setattr(WeightStore, "push", push_any)


def an_order_gate_stays_shut(patch: Patch) -> None:
    patch.setattr(GradientGate, "finished", lambda gate, interval, epoch: False)


LATER_DEFECTS = {
    a_read_gate_opens_an_epoch_early: Layout(3, 1, mode="async", staleness=1),
    an_epoch_gate_opens_an_epoch_early: Layout(2, 1, mode="async", staleness=1),
    a_stash_is_released_early: Layout(2, 1, mode="async", staleness=1),
    a_pin_is_forgotten: Layout(2, 1, mode="async", staleness=1, weight_update="interval"),
    a_generation_is_ignored: Layout(2, 1, kills=2),
    an_order_gate_stays_shut: Layout(2, 1, gradient_window=1),
}
DEFECTS = (
    an_old_ghost_is_accepted,
    ghosts_are_added_up,
    rows_of_any_pass_count_as_arrived,
    a_gather_starts_one_feed_early,
    a_gradient_is_dropped,
    a_repeated_gradient_counts_twice,
    a_repeated_result_is_taken_again,
    own_rows_are_added_to_a_table,
)


# ---- and that they are found


def different(run: Callable[[], Outcome], reference: Outcome) -> bool:
    try:
        return run() != reference
    except (AssertionError, ScheduleError):
        return True


def orders(job: SmallJob, dtype: Any) -> Iterator[Callable[[], Outcome]]:
    for seed in range(SEEDS):
        yield partial(simulate, job, Layout(2 + seed % 3, 1 + seed % 2, seed=seed, dtype=dtype))


def is_found(jobs: Callable[[int, str], SmallJob], defect: Callable[[Patch], None], dtype: Any = np.float32) -> bool:
    prepared = [jobs(number, "graphsage") for number in GRAPHS]
    references = [simulate(job, Layout(dtype=dtype)) for job in prepared]
    with pytest.MonkeyPatch.context() as patch:
        defect(patch)
        pairs = zip(prepared, references, strict=True)
        return any(different(run, reference) for job, reference in pairs for run in orders(job, dtype))


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_found(jobs: Callable[[int, str], SmallJob], defect: Callable[[Patch], None]):
    assert is_found(jobs, defect)


def test_a_regrouped_sum_is_found(jobs: Callable[[int, str], SmallJob]):
    """In float64: rounded to float32, most sums hide in which order they were added."""
    assert is_found(jobs, a_sum_is_regrouped, np.float64)


def is_found_in(jobs: Callable[[int, str], SmallJob], layout: Layout, defect: Callable[[Patch], None]) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        defect(patch)
        return any(
            fails(partial(simulate, jobs(number, "graphsage"), replace(layout, seed=seed)))
            for seed in range(SEEDS)
            for number in GRAPHS
        )


def fails(run: Callable[[], Outcome]) -> bool:
    try:
        run()
    except (AssertionError, DorylusError):
        return True
    return False


@pytest.mark.parametrize("defect", LATER_DEFECTS)
def test_a_defect_of_async_or_of_restarts_is_found(
    long_jobs: Callable[[int, str], SmallJob], defect: Callable[[Patch], None]
):
    layout = LATER_DEFECTS[defect]
    assert is_found_in(long_jobs, layout, defect)
    assert not fails(partial(simulate, long_jobs(2, "graphsage"), replace(layout, seed=1)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_a_defect_nothing_is_found(jobs: Callable[[int, str], SmallJob], dtype: Any):
    assert not is_found(jobs, lambda patch: None, dtype)

"""In whatever order intervals want to end their epochs: none waits for ever, none runs too far ahead, none is lost, and
what a parameter server holds back stays below its bound."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from common.passes import PassKind
from parameter_server.clock_events import ClockSettings, ClockState, EpochEnded, MayEnd
from parameter_server.gradient_gate import BOUND_BYTES, GradientGate, window_of
from parameter_server.training_clock import TrainingClock
from parameter_server.tree_sum import TreeSum
from tests.examples import examples
from tests.parameter_server.test_async_clock import Drive, of

FLOAT32 = 4


def test_where_all_gradients_fit_nobody_waits():
    assert window_of(128, 600_000) is None
    assert window_of(4096, 10_000) is None
    gate = GradientGate(128, None)
    assert not gate.finished(5, 1)
    assert gate.ends_below is None


def test_the_window_is_what_fits_beside_the_merged_part():
    assert window_of(4096, 1_000_000) == BOUND_BYTES // 1_000_000 - 2 * 14
    assert window_of(4096, 10**12) == 1


def test_the_line_goes_on_from_epoch_to_epoch():
    gate = GradientGate(3, 2)
    assert gate.ends_below == 2
    assert not gate.finished(1, 1)
    assert gate.finished(0, 1)
    assert gate.ends_below == 4
    assert not gate.finished(0, 2)
    assert gate.finished(2, 1)
    assert gate.ends_below == 6, "of epoch 2 interval 0 has ended, 1 and 2 may"


def test_a_repeat_changes_nothing_and_a_resumed_line_begins_after_its_epoch():
    gate = GradientGate(2, 1, epoch=4)
    assert gate.ends_below == 9
    assert gate.finished(0, 5)
    assert not gate.finished(0, 5)
    assert not gate.finished(1, 4)
    assert gate.ends_below == 10


@settings(max_examples=examples(80), deadline=None)
@given(
    num_intervals=st.integers(1, 40),
    bound_in_gradients=st.integers(0, 60),
    staleness=st.integers(0, 2),
    seed=st.integers(0, 2**32),
)
def test_what_is_held_back_stays_below_the_bound(num_intervals, bound_in_gradients, staleness, seed):
    """Gradients come first, the news of an end some time later, in any order."""
    die, num_epochs = random.Random(seed), 4
    least = 1 + 2 * (num_intervals.bit_length() + 1)
    bound = FLOAT32 * max(bound_in_gradients, least)
    gate = GradientGate(num_intervals, window_of(num_intervals, FLOAT32, bound))
    trees = {epoch: TreeSum(num_intervals) for epoch in range(1, num_epochs + 1)}
    next_epoch, unheard, ended, heard = [1] * num_intervals, [], 0, 0
    while heard < num_epochs * num_intervals:
        may = [i for i, epoch in enumerate(next_epoch) if epoch <= min(num_epochs, ended + 1 + staleness)]
        may = [
            i for i in may if allowed(gate, num_intervals, i, next_epoch[i]) and (i, next_epoch[i] - 1) not in unheard
        ]
        assert may or unheard, "a standstill"
        if may and (not unheard or die.random() < 0.6):
            interval = die.choice(may)
            epoch = next_epoch[interval]
            assert trees[epoch].add(interval, np.full(1, 1 + interval, np.float32))
            next_epoch[interval] += 1
            unheard.append((interval, epoch))
        else:
            interval, epoch = unheard.pop(die.randrange(len(unheard)))
            gate.finished(interval, epoch)
            heard += 1
            while ended < num_epochs and trees[ended + 1].complete:
                ended += 1
        held = sum(tree.held_bytes for tree in trees.values() if not tree.complete)
        assert gate.ends_below is None or held <= bound
    assert all(tree.total() == num_intervals * (num_intervals + 1) / 2 for tree in trees.values())


def test_without_the_gate_more_would_be_held_back():
    tree, bound = TreeSum(64), 4 * FLOAT32 + FLOAT32 * 2 * 8
    for interval in range(0, 64, 2):
        tree.add(interval, np.ones(1, np.float32))
    assert window_of(64, FLOAT32, bound) == 4
    assert tree.held_bytes > bound


def allowed(gate: GradientGate, num_intervals: int, interval: int, epoch: int) -> bool:
    return gate.ends_below is None or (epoch - 1) * num_intervals + interval < gate.ends_below


class InOrder(Drive):
    """Only who may end does."""

    def __init__(self, *args):
        self.ends_below = None
        super().__init__(*args)

    def take(self, events):
        for event in of(MayEnd, events):
            assert self.ends_below is None or event.ends_below > self.ends_below
            self.ends_below = event.ends_below
        super().take(events)

    def candidates(self):
        return [interval for interval in super().candidates() if self.may_end(interval, self.running[interval])]

    def may_end(self, interval, pass_):
        place = (pass_.epoch - 1) * self.num_intervals + interval
        return pass_.kind is not PassKind.TRAIN or self.ends_below is None or place < self.ends_below


@settings(max_examples=examples(100), deadline=None)
@given(
    staleness=st.one_of(st.none(), st.integers(0, 3)),
    num_intervals=st.integers(1, 6),
    window=st.integers(1, 4),
    eval_frequency=st.integers(0, 4),
    seed=st.integers(0, 2**32),
)
def test_every_epoch_ends_and_the_staleness_bound_holds(staleness, num_intervals, window, eval_frequency, seed):
    clock = TrainingClock(
        ClockSettings(num_epochs=9, eval_frequency=eval_frequency, staleness=staleness, gradient_window=window),
        num_intervals,
    )
    drive = InOrder(clock, num_intervals, seed)
    while drive.running:
        for pass_ in drive.running.values():
            assert min(drive.finished) >= pass_.epoch - 1 - (staleness or 0)
        drive.report()
    assert clock.state is ClockState.COMPLETED
    assert drive.finished == [9] * num_intervals
    assert [e.metrics.epoch for e in of(EpochEnded, drive.events)] == list(range(1, 10))

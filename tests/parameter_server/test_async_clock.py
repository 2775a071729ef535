"""The training clock in async: stretches of epochs between pauses, driven in random order."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import ScheduleError
from common.passes import Pass, PassKind, evaluate
from parameter_server.clock_events import (
    BecameExact,
    BestChanged,
    CheckpointDue,
    ClockSettings,
    ClockState,
    EpochEnded,
    IntervalsMayBegin,
    PassOpened,
    Stopped,
)
from parameter_server.saved_state import ClockRecord
from parameter_server.training_clock import TrainingClock
from tests.examples import examples

SUMS = {"loss": 1.0, "loss_weight": 1.0, "valid_correct": 1.0, "valid_count": 2.0}


class Drive:
    """Reports one running interval after another, as the die says."""

    def __init__(self, clock, num_intervals, seed=0, *, per_interval=False):
        self.clock, self.die, self.per_interval = clock, random.Random(seed), per_interval
        self.num_intervals, self.steps = num_intervals, 0
        self.running, self.events, self.finished = {}, [], [0] * num_intervals
        self.take(clock.start())

    def take(self, events):
        self.events += events
        for event in events:
            match event:
                case PassOpened(pass_):
                    assert not self.running
                    self.running = dict.fromkeys(range(self.num_intervals), pass_)
                case IntervalsMayBegin(grants):
                    for interval, pass_ in grants:
                        assert interval not in self.running
                        self.running[interval] = pass_

    def candidates(self):
        return sorted(self.running)

    def report(self):
        interval = self.die.choice(self.candidates())
        pass_ = self.running.pop(interval)
        self.steps += 1
        if pass_.kind is PassKind.TRAIN:
            self.finished[interval] = pass_.epoch
        newest = self.steps if self.per_interval else min(self.finished)
        self.take(self.clock.interval_finished(pass_, interval, SUMS, newest=newest))
        if self.die.random() < 0.3:
            assert self.clock.interval_finished(pass_, interval, SUMS, newest=newest) == []

    def run(self):
        while self.running:
            self.report()
        return self.events


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


@settings(max_examples=examples(200), deadline=None)
@given(
    staleness=st.integers(0, 3),
    num_intervals=st.integers(1, 6),
    num_epochs=st.integers(1, 12),
    eval_frequency=st.integers(0, 5),
    checkpoint_frequency=st.integers(0, 4),
    seed=st.integers(0, 2**32),
)
def test_no_interval_is_ever_ahead_by_more_than_the_staleness(
    staleness, num_intervals, num_epochs, eval_frequency, checkpoint_frequency, seed
):
    clock = TrainingClock(
        ClockSettings(
            num_epochs=num_epochs,
            eval_frequency=eval_frequency,
            staleness=staleness,
            checkpoint_frequency=checkpoint_frequency,
        ),
        num_intervals,
    )
    drive = Drive(clock, num_intervals, seed)
    while drive.running:
        for pass_ in drive.running.values():
            if pass_.kind is PassKind.TRAIN:
                assert min(drive.finished) >= pass_.epoch - 1 - staleness
                assert pass_.epoch - 1 - staleness <= pass_.weights_version < pass_.epoch
        drive.report()
    assert clock.state is ClockState.COMPLETED
    assert drive.finished == [num_epochs] * num_intervals
    assert [e.metrics.epoch for e in of(EpochEnded, drive.events)] == list(range(1, num_epochs + 1))
    exact = {e.metrics.epoch for e in of(EpochEnded, drive.events) if e.metrics.exact}
    assert exact == {e for e in range(1, num_epochs + 1) if eval_frequency and e % eval_frequency == 0} | {num_epochs}
    saved = {e.record.epoch for e in of(CheckpointDue, drive.events)}
    due = {e for e in range(1, num_epochs + 1) if checkpoint_frequency and e % checkpoint_frequency == 0}
    assert saved == (due | {num_epochs} if checkpoint_frequency else set())


def test_intervals_do_run_ahead():
    """Else the bound would prove nothing."""
    clock = TrainingClock(ClockSettings(num_epochs=8, eval_frequency=0, staleness=2), 2)
    clock.start()
    for epoch in (1, 2, 3):
        pass_ = Pass(epoch, PassKind.TRAIN, 0)
        (granted, *rest) = clock.interval_finished(pass_, 0, SUMS, newest=0) or [None]
        assert rest == []
        expected = None if epoch == 3 else IntervalsMayBegin(((0, Pass(epoch + 1, PassKind.TRAIN, 0)),), exact_until=1)
        assert granted == expected
    events = clock.interval_finished(Pass(1, PassKind.TRAIN, 0), 1, SUMS, newest=1)
    assert [type(e) for e in events] == [EpochEnded, IntervalsMayBegin]
    assert dict(events[1].grants) == {0: Pass(4, PassKind.TRAIN, 1), 1: Pass(2, PassKind.TRAIN, 1)}


def test_between_pauses_an_epoch_has_the_metrics_of_its_own_forward():
    clock = TrainingClock(ClockSettings(num_epochs=4, eval_frequency=4, staleness=0), 1)
    ended = of(EpochEnded, Drive(clock, 1).run())
    assert [(e.metrics.exact, e.metrics.valid_accuracy, e.metrics.loss) for e in ended] == [
        (False, 0.5, 1.0),
        (False, 0.5, 1.0),
        (False, 0.5, 1.0),
        (True, 0.5, 1.0),
    ]


def test_a_stop_comes_as_soon_as_all_have_caught_up():
    clock = TrainingClock(ClockSettings(num_epochs=50, eval_frequency=0, staleness=3, checkpoint_frequency=50), 3)
    drive = Drive(clock, 3, seed=1)
    for _ in range(10):
        drive.report()
    newest = max(*drive.finished, *(pass_.epoch for pass_ in drive.running.values()))
    clock.stop_requested("enough")
    events = drive.run()
    assert events[-1] == Stopped(ClockState.STOPPED, "enough", newest, newest, newest, newest)
    kinds = [type(e) for e in events[-4:]]
    # What the evaluation finds is not in the checkpoint: a resumed run shall not know of it.
    assert kinds == [EpochEnded, BestChanged, PassOpened, Stopped]
    (saved,) = of(CheckpointDue, events)
    assert (saved.record.epoch, saved.record.best_epoch) == (newest, None)


def test_a_checkpoint_asked_for_comes_at_a_pause_and_training_goes_on():
    clock = TrainingClock(ClockSettings(num_epochs=9, eval_frequency=0, staleness=1, checkpoint_frequency=9), 2)
    drive = Drive(clock, 2, seed=3)
    drive.report()
    clock.checkpoint_requested()
    saved = of(CheckpointDue, drive.run())
    assert len(saved) == 2
    assert saved[0].record.epoch < 9
    assert clock.state is ClockState.COMPLETED


def test_async_becomes_pipe():
    clock = TrainingClock(ClockSettings(num_epochs=6, eval_frequency=2, staleness=1, async_until=0.4), 2)
    events = Drive(clock, 2).run()
    assert of(BecameExact, events) == [BecameExact(3, 2)]
    assert {pass_.epoch for e in of(IntervalsMayBegin, events) for _, pass_ in e.grants} == {1, 2}
    trained = [e.pass_ for e in of(PassOpened, events) if e.pass_.kind is PassKind.TRAIN]
    assert trained == [Pass(epoch, PassKind.TRAIN, epoch - 1) for epoch in (3, 4, 5, 6)]


def test_one_step_per_interval_makes_more_versions_than_epochs():
    clock = TrainingClock(ClockSettings(num_epochs=4, eval_frequency=2, staleness=0), 3)
    drive = Drive(clock, 3, per_interval=True)
    events = drive.run()
    assert events[-1].last_epoch == 4
    assert events[-1].last_version > 4
    evaluations = [e.pass_ for e in of(PassOpened, events) if e.pass_.kind is PassKind.EVALUATE]
    assert [p.epoch for p in evaluations] == [2, 4]
    assert of(BestChanged, events)[0].version == evaluations[0].weights_version == 6
    assert (events[-1].best_version, events[-1].best_epoch) == (6, 2)


def test_a_resumed_clock_goes_on_behind_its_checkpoint():
    record = ClockRecord(
        epoch=4,
        version=4,
        loss=0.5,
        best_epoch=2,
        best_version=2,
        best_metric=0.9,
        reference=0.9,
        evaluations_without_improvement=1,
    )
    clock = TrainingClock(ClockSettings(num_epochs=5, staleness=1, eval_frequency=1), 1, resumed=record)
    events = Drive(clock, 1).run()
    assert events[0] == IntervalsMayBegin(((0, Pass(5, PassKind.TRAIN, 4)),), exact_until=5)
    assert events[-1] == Stopped(ClockState.COMPLETED, "all 5 epochs are done", 2, 5, 2, 5)


def test_a_clock_resumed_after_its_last_epoch_evaluates_and_ends():
    record = ClockRecord(epoch=5, version=5, loss=0.5)
    clock = TrainingClock(ClockSettings(num_epochs=5), 1, resumed=record)
    events = Drive(clock, 1).run()
    assert events[0] == PassOpened(evaluate(5))
    assert events[1].metrics.loss == 0.5
    assert events[-1].state is ClockState.COMPLETED


def test_a_pass_that_was_not_granted_is_refused():
    clock = TrainingClock(ClockSettings(num_epochs=5, staleness=1), 2)
    clock.start()
    with pytest.raises(ScheduleError) as caught:
        clock.interval_finished(Pass(2, PassKind.TRAIN, 0), 0, SUMS)
    assert str(caught.value) == (
        "the training clock was told: train 2 (weights version 0) finished by interval 0\n"
        "  why: it is Training, and open is train with reports of intervals []"
    )

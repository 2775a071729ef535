"""The training clock, driven like a job: every interval of the open pass reports, in some order, perhaps twice."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import passes
from common.epoch_metrics import EpochMetrics
from common.errors import ScheduleError, SpecError
from common.passes import PassKind
from parameter_server.clock_events import (
    BestChanged,
    ClockSettings,
    ClockState,
    EpochEnded,
    PassOpened,
    Stopped,
    check_valid_mask,
)
from parameter_server.training_clock import TRANSITIONS, Move, TrainingClock

NUM_VALID = 100


def stopped(state, reason, best, last):
    """With one optimizer step per epoch, versions are epochs."""
    return Stopped(state, reason, best, last, best, last)


def sums(pass_, interval, num_intervals, valid):
    """This interval's share. The valid accuracy of version e is valid[e - 1]; all valid vertices are in interval 0."""
    if pass_.kind is PassKind.TRAIN:
        return {"loss": pass_.epoch / 3 + interval / 7, "loss_weight": 1.0}
    correct = valid[pass_.epoch - 1]
    report = {"train_correct": 3.0, "train_count": 4.0, "test_correct": 1.0, "test_count": 2.0}
    if interval == 0 and correct is not None:
        report |= {"valid_correct": round(correct * NUM_VALID), "valid_count": NUM_VALID}
    return report


def drive(clock, valid, *, num_intervals=1, order=sorted, after=None):
    """All events until the clock stops; after(clock, pass_) is called at each pass's opening."""
    events = clock.start()
    while clock.current is not None:
        pass_ = clock.current
        if after:
            after(clock, pass_)
        for interval in order(range(num_intervals)):
            events += clock.interval_finished(pass_, interval, sums(pass_, interval, num_intervals, valid))
    return events


def run(valid, *, num_epochs=None, **options):
    clock = TrainingClock(ClockSettings(num_epochs=num_epochs or len(valid), **options), 1)
    return clock, drive(clock, valid)


def opened(events):
    return [str(event.pass_) for event in events if isinstance(event, PassOpened)]


def evaluated(events):
    return [e.metrics.epoch for e in events if isinstance(e, EpochEnded) and e.metrics.train_accuracy is not None]


def metrics_of(**figures) -> EpochMetrics:
    """The metric is the accuracy."""
    same = {name.replace("accuracy", "metric"): value for name, value in figures.items() if "accuracy" in name}
    return EpochMetrics(**figures, **same, exact=True)


def test_a_whole_job():
    clock, events = run([0.5, 0.6])
    assert events == [
        PassOpened(passes.train(1)),
        PassOpened(passes.evaluate(1)),
        EpochEnded(metrics_of(epoch=1, loss=1 / 3, train_accuracy=0.75, valid_accuracy=0.5, test_accuracy=0.5)),
        BestChanged(1, None),
        PassOpened(passes.train(2)),
        PassOpened(passes.evaluate(2)),
        EpochEnded(metrics_of(epoch=2, loss=2 / 3, train_accuracy=0.75, valid_accuracy=0.6, test_accuracy=0.5)),
        BestChanged(2, 1),
        PassOpened(passes.predict(2, 2)),
        stopped(ClockState.COMPLETED, "all 2 epochs are done", 2, 2),
    ]
    assert (clock.state, clock.current, clock.so_far(2).best_version) == (ClockState.COMPLETED, None, 2)


def test_nothing_is_open_before_the_start():
    clock = TrainingClock(ClockSettings(num_epochs=1), 1)
    assert (clock.current, clock.state) == (None, ClockState.READY)
    assert clock.start() == [PassOpened(passes.train(1))]
    assert clock.current == passes.train(1)


@settings(deadline=None)
@given(st.data())
def test_any_order_with_repeats_gives_the_same_events(data):
    num_intervals = data.draw(st.integers(1, 6))
    valid = data.draw(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=4))
    job = ClockSettings(num_epochs=len(valid), eval_frequency=data.draw(st.integers(0, 3)))

    def shuffled(intervals):
        order = data.draw(st.permutations(list(intervals)))
        return order + data.draw(st.lists(st.sampled_from(order), max_size=4))

    events = drive(TrainingClock(job, num_intervals), valid, num_intervals=num_intervals, order=shuffled)
    assert events == drive(TrainingClock(job, num_intervals), valid, num_intervals=num_intervals)


def test_the_loss_is_the_tree_ordered_sum():
    """Mutation: from left to right the small ones would be lost in 1e16."""
    values = [1e16, 1.0, 1.0, 1.0]
    clock = TrainingClock(ClockSettings(num_epochs=2, eval_frequency=0), 4)
    clock.start()
    events = []
    for interval in (2, 0, 3, 1):
        events += clock.interval_finished(passes.train(1), interval, {"loss": values[interval], "loss_weight": 1.0})
    tree, left_fold = (1e16 + 1.0) + (1.0 + 1.0), ((1e16 + 1.0) + 1.0) + 1.0
    assert tree != left_fold
    assert events[0] == EpochEnded(EpochMetrics(epoch=1, loss=tree / 4, exact=False))


def test_a_repeat_does_not_replace_the_first_report():
    clock = TrainingClock(ClockSettings(num_epochs=2, eval_frequency=0), 2)
    clock.start()
    first = {"loss": 1.0, "loss_weight": 1.0}
    assert clock.interval_finished(passes.train(1), 0, first) == []
    first["loss"] = 50.0
    assert clock.interval_finished(passes.train(1), 0, {"loss": 9.0, "loss_weight": 9.0}) == []
    ended, opened_ = clock.interval_finished(passes.train(1), 1, {"loss": 3.0, "loss_weight": 1.0})
    assert (ended.metrics.loss, opened_.pass_) == (2.0, passes.train(2))


def test_reports_of_passes_that_ended_are_repeats():
    clock, events = run([0.5, 0.6])
    for event in events:
        if isinstance(event, PassOpened):
            assert clock.interval_finished(event.pass_, 0, {}) == []
    assert clock.state is ClockState.COMPLETED


@pytest.mark.parametrize(
    ("frequency", "epochs"), [(1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (3, [3, 5]), (5, [5]), (9, [5]), (0, [5])]
)
def test_eval_frequency(frequency, epochs):
    _, events = run([0.1] * 5, eval_frequency=frequency)
    assert evaluated(events) == epochs
    assert opened(events) == [
        name for e in range(1, 6) for name in ([f"train {e}"] + ([f"evaluate {e}"] if e in epochs else []))
    ] + ["predict 5"]


def test_an_epoch_without_evaluation_still_has_its_loss():
    _, events = run([0.1] * 3, eval_frequency=0)
    assert [e for e in events if isinstance(e, EpochEnded)][:2] == [
        EpochEnded(EpochMetrics(epoch=1, loss=1 / 3, exact=False)),
        EpochEnded(EpochMetrics(epoch=2, loss=2 / 3, exact=False)),
    ]


def test_predictions_come_from_the_best_version():
    _, events = run([0.3, 0.7, 0.7, 0.5])
    assert [e for e in events if isinstance(e, BestChanged)] == [BestChanged(1, None), BestChanged(2, 1)]
    assert events[-2:] == [
        PassOpened(passes.predict(4, 2)),
        stopped(ClockState.COMPLETED, "all 4 epochs are done", 2, 4),
    ]


def test_a_metric_of_which_less_is_better():
    clock = TrainingClock(ClockSettings(num_epochs=3, metric="mae", task="regression", target_metric=0.2), 1)
    events = clock.start()
    for error in (0.3, 0.2):
        events += clock.interval_finished(clock.current, 0, {"loss": 1.0, "loss_weight": 1.0})
        events += clock.interval_finished(clock.current, 0, {"valid_error_0": 10 * error, "valid_count_0": 10.0})
    events += clock.interval_finished(clock.current, 0, {})
    assert events[-1] == stopped(ClockState.COMPLETED, "the valid metric 0.2000 of epoch 2 reached the target", 2, 2)


def test_without_a_valid_mask_the_last_version_is_the_best():
    _, events = run([None, None, None])
    assert [e for e in events if isinstance(e, BestChanged)] == [
        BestChanged(1, None),
        BestChanged(2, 1),
        BestChanged(3, 2),
    ]
    assert {e.metrics.valid_accuracy for e in events if isinstance(e, EpochEnded)} == {None}
    assert events[-1].best_version == 3


def test_early_stopping():
    _, events = run([0.5, 0.4, 0.5, 0.6, 0.6, 0.6, 0.9], use_early_stop=True, early_stop_rounds=2, num_epochs=7)
    assert events[-1] == stopped(ClockState.COMPLETED, "no improvement in 2 evaluations (epoch 3)", 1, 3)


def test_early_stopping_counts_evaluations_not_epochs():
    valid = [0.9, 0.5, 0.9, 0.4, 0.9, 0.4, 0.9, 0.9]
    _, events = run(valid, eval_frequency=2, use_early_stop=True, early_stop_rounds=2)
    assert events[-1] == stopped(ClockState.COMPLETED, "no improvement in 2 evaluations (epoch 6)", 2, 6)


def test_early_stopping_wants_more_than_min_delta():
    options = {"use_early_stop": True, "early_stop_rounds": 2, "num_epochs": 4}
    valid = [0.50, 0.52, 0.54, 0.56]
    assert run(valid, **options)[1][-1].reason == "all 4 epochs are done"
    assert run(valid, early_stop_min_delta=0.1, **options)[1][-1] == stopped(
        ClockState.COMPLETED, "no improvement in 2 evaluations (epoch 3)", 3, 3
    )


def test_early_stopping_is_off_by_default():
    assert run([0.5] * 30)[1][-1].last_version == 30


def test_the_target():
    _, events = run([0.5, 0.79, 0.8, 0.9], target_metric=0.8)
    assert events[-2:] == [
        PassOpened(passes.predict(3, 3)),
        stopped(ClockState.COMPLETED, "the valid metric 0.8000 of epoch 3 reached the target", 3, 3),
    ]


@pytest.mark.parametrize(
    ("during", "passes_opened"),
    [
        ("train 2", ["train 1", "train 2", "evaluate 2", "predict 2"]),
        ("train 4", ["train 1", "train 2", "train 3", "evaluate 3", "train 4", "evaluate 4", "predict 4"]),
        ("evaluate 3", ["train 1", "train 2", "train 3", "evaluate 3", "predict 3"]),
    ],
)
def test_a_requested_stop_ends_at_the_next_pause(during, passes_opened):
    clock = TrainingClock(ClockSettings(num_epochs=9, eval_frequency=3), 1)
    valid = [0.1, 0.2, 0.3, 0.2, 0.1]

    def stop(clock, pass_):
        if str(pass_) == during:
            clock.stop_requested()

    events = drive(clock, valid, after=stop)
    assert opened(events) == passes_opened
    last = int(during[-1])
    assert events[-1] == stopped(ClockState.STOPPED, "stopped", min(last, 3), last)
    assert clock.state is ClockState.STOPPED


def test_a_stop_requested_in_the_last_epoch_or_later_changes_nothing():
    for during in ("train 2", "evaluate 2", "predict 2"):
        clock = TrainingClock(ClockSettings(num_epochs=2), 1)
        stop = lambda clock, pass_, during=during: clock.stop_requested() if str(pass_) == during else None  # noqa: E731
        assert drive(clock, [0.5, 0.6], after=stop)[-1].reason == "all 2 epochs are done"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_fails_the_job(value):
    clock = TrainingClock(ClockSettings(num_epochs=5), 2)
    clock.start()
    clock.interval_finished(passes.train(1), 0, {"loss": 1.0, "loss_weight": 1.0})
    events = clock.interval_finished(passes.train(1), 1, {"loss": value, "loss_weight": 1.0})
    reason = f"the training loss of epoch 1 is {value}; set a smaller training.lr"
    assert events == [stopped(ClockState.FAILED, reason, None, 1)]
    assert (clock.state, clock.current) == (ClockState.FAILED, None)


def test_a_failed_job_still_has_the_best_version_so_far():
    clock = TrainingClock(ClockSettings(num_epochs=5), 1)
    clock.start()
    clock.interval_finished(passes.train(1), 0, {"loss": 1.0, "loss_weight": 1.0})
    clock.interval_finished(passes.evaluate(1), 0, {"valid_correct": 1.0, "valid_count": 2.0})
    events = clock.interval_finished(passes.train(2), 0, {"loss": math.nan, "loss_weight": 1.0})
    assert events == [
        stopped(ClockState.FAILED, "the training loss of epoch 2 is nan; set a smaller training.lr", 1, 2)
    ]


def test_an_evaluation_that_is_not_finite_fails_the_job():
    clock = TrainingClock(ClockSettings(num_epochs=5), 1)
    clock.start()
    clock.interval_finished(passes.train(1), 0, {"loss": 1.0, "loss_weight": 1.0})
    events = clock.interval_finished(passes.evaluate(1), 0, {"valid_loss": math.nan})
    reason = "valid_loss in the evaluation of epoch 1 is nan; set a smaller training.lr"
    assert events == [stopped(ClockState.FAILED, reason, None, 1)]


def test_no_train_entry_with_a_weight_fails_the_job():
    clock = TrainingClock(ClockSettings(num_epochs=5), 1)
    clock.start()
    events = clock.interval_finished(passes.train(1), 0, {"loss": 0.0, "loss_weight": 0.0})
    assert events == [stopped(ClockState.FAILED, "no train entry has a weight, so there is no loss", None, 1)]


@pytest.mark.parametrize(
    ("pass_", "interval", "told"),
    [
        (passes.train(2), 0, "train 2 (weights version 1) finished by interval 0"),
        (passes.evaluate(1), 1, "evaluate 1 (weights version 1) finished by interval 1"),
        (passes.Pass(1, PassKind.TRAIN, 7), 0, "train 1 (weights version 7) finished by interval 0"),
        (passes.train(1), 3, "train 1 finished by interval 3 of 3"),
        (passes.train(1), -1, "train 1 finished by interval -1 of 3"),
    ],
)
def test_a_report_that_cannot_be(pass_, interval, told):
    clock = TrainingClock(ClockSettings(num_epochs=5), 3)
    clock.start()
    clock.interval_finished(passes.train(1), 2, {"loss": 1.0, "loss_weight": 1.0})
    with pytest.raises(ScheduleError) as caught:
        clock.interval_finished(pass_, interval, {})
    assert str(caught.value) == (
        f"the training clock was told: {told}\n  why: it is Training, and open is train 1 with reports of intervals [2]"
    )


def test_it_starts_once():
    clock, _ = run([0.5])
    with pytest.raises(ScheduleError) as caught:
        clock.start()
    assert str(caught.value) == ("the training clock was told: start\n  why: it is Completed, and open is no pass")


@pytest.mark.parametrize(("num_epochs", "num_intervals"), [(0, 1), (1, 0)])
def test_a_clock_over_nothing(num_epochs, num_intervals):
    with pytest.raises(ScheduleError, match=f"a clock over {num_epochs} epochs and {num_intervals} intervals"):
        TrainingClock(ClockSettings(num_epochs=num_epochs), num_intervals)


@pytest.mark.parametrize(
    ("options", "key"), [({"use_early_stop": True}, "use_early_stop"), ({"target_metric": 0.8}, "target_metric")]
)
def test_settings_that_need_a_valid_mask(options, key):
    job = ClockSettings(num_epochs=5, **options)
    check_valid_mask(job, 1)
    check_valid_mask(ClockSettings(num_epochs=5), 0)
    with pytest.raises(SpecError) as caught:
        check_valid_mask(job, 0)
    assert str(caught.value) == (
        f"training.{key} is set, but the valid mask is empty\n"
        "  why: it looks at the metric over the valid mask\n"
        f"  fix: remove {key}, or give the dataset a valid mask (dataset.split)"
    )


def test_every_state_is_reached_and_the_ends_have_no_way_out():
    ends = {ClockState.COMPLETED, ClockState.STOPPED, ClockState.FAILED}
    assert set(TRANSITIONS.values()) | {ClockState.READY} == set(ClockState)
    assert {state for state, _ in TRANSITIONS} == set(ClockState) - ends
    assert {move for _, move in TRANSITIONS} == set(Move)

"""The scheduler, event by event: a GCN of two layers, seven steps in a train pass and four in an evaluate pass."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from common import plugins
from common.errors import ScheduleError, TaskCrashed
from common.passes import Pass, evaluate, predict, train
from common.saga.layer import ModelOptions
from common.saga.program import Programs, derive
from graph_server.schedule.events import (
    Apply,
    ClockAdvanced,
    ClockStopped,
    Command,
    Event,
    Finish,
    Gather,
    GhostRowsArrived,
    IntervalsMayEnd,
    PeerLost,
    Reason,
    ReportFinished,
    Scatter,
    StageDone,
    TaskFailed,
    TaskLost,
)
from graph_server.schedule.scheduler import Mode, Scheduler

PROJECT, SCATTER, GATHER, LOSS, SCATTER_BACK, GATHER_BACK, LAST = range(7)
CHAIN = {0: (0,), 1: (0, 1)}
"""Interval 1 reads 0 and itself, interval 0 only itself."""


def programs(model: str = "gcn", **switches: bool) -> Programs:
    options = ModelOptions(num_features=8, num_classes=2, hidden_sizes=(4,), num_heads=2)
    return derive(plugins.load("common.models", model).build(options), **switches)


def scheduler(
    feeds: Mapping[int, Sequence[int]] = CHAIN,
    *,
    num_intervals: int = 2,
    mode: Mode = "pipe",
    places: int = 8,
    of: Programs | None = None,
) -> Scheduler:
    return Scheduler(
        of or programs(),
        feeds=(feeds, feeds),
        num_intervals=num_intervals,
        mode=mode,
        places={"graph": places, "tensor": places},
    )


def handle(scheduled: Scheduler, *events: Event) -> list[Command]:
    """What the last event makes possible."""
    commands: list[Command] = []
    for event in events:
        commands = scheduled.handle(event)
        scheduled.validate()
    return commands


def done(position: int, interval: int = 0, pass_: Pass | None = None) -> StageDone:
    return StageDone(pass_ or train(1), position, interval)


def walk(scheduled: Scheduler, pass_: Pass, positions: Iterable[int], interval: int = 0) -> list[Command]:
    return handle(scheduled, *(done(position, interval, pass_) for position in positions))


def test_the_programs_are_what_this_file_counts_on():
    assert str(programs().train) == (
        "(once: Gather0) ApplyVertex0+1 · Scatter1 · Gather1 · ApplyVertex1+Loss+∇ApplyVertex1 · ∇Scatter1"
        " · ∇Gather1 · ∇ApplyVertex1+0"
    )
    assert str(programs().evaluate) == "(once: Gather0) ApplyVertex0+1 · Scatter1 · Gather1 · ApplyVertex1+Loss"


# ---- a pass from one end to the other


def test_a_pass_that_opens_while_an_interval_walks_raises_with_its_story():
    scheduled = scheduler({0: (0,)}, num_intervals=1)
    handle(scheduled, ClockAdvanced(train(1)))
    with pytest.raises(ScheduleError, match="interval 0, RUNNING, step 0: PASS_OPENED is illegal") as error:
        scheduled.handle(ClockAdvanced(evaluate(1)))
    assert "PASS_OPENED at step 0 train 1 · GATE_OPENED at step 0 · STARTED at step 0" in error.value.why


def test_one_interval_walks_through_the_train_pass():
    scheduled, pass_ = scheduler({0: (0,)}, num_intervals=1), train(1)
    assert handle(scheduled, ClockAdvanced(pass_)) == [Apply(pass_, PROJECT, 0, 1)]
    assert handle(scheduled, done(PROJECT)) == [Scatter(pass_, SCATTER, 0)]
    assert handle(scheduled, done(SCATTER)) == [Gather(pass_, GATHER, 0)]
    assert handle(scheduled, done(GATHER)) == [Apply(pass_, LOSS, 0, 1)]
    assert handle(scheduled, done(LOSS)) == [Scatter(pass_, SCATTER_BACK, 0)]
    assert handle(scheduled, done(SCATTER_BACK)) == [Gather(pass_, GATHER_BACK, 0)]
    assert handle(scheduled, done(GATHER_BACK)) == [Apply(pass_, LAST, 0, 1)]
    assert handle(scheduled, done(LAST)) == [ReportFinished(pass_, 0)]
    assert handle(scheduled, ClockAdvanced(evaluate(1))) == [Apply(evaluate(1), PROJECT, 0, 1)]
    assert walk(scheduled, evaluate(1), range(4)) == [ReportFinished(evaluate(1), 0)]
    assert handle(scheduled, ClockAdvanced(predict(1, 1))) == [Apply(predict(1, 1), PROJECT, 0, 1)]
    assert walk(scheduled, predict(1, 1), range(4)) == [ReportFinished(predict(1, 1), 0)]


def test_a_gather_over_a_constant_waits_for_nobody():
    scheduled = scheduler({1: (0, 1)}, of=programs(hoist=False, commute=False))
    assert handle(scheduled, ClockAdvanced(train(1))) == [Gather(train(1), 0, 1)]


# ---- pipe: a Gather waits for the rows that its interval reads


def test_pipe_starts_a_gather_as_soon_as_its_rows_are_there():
    scheduled = scheduler()
    handle(scheduled, ClockAdvanced(train(1)), done(PROJECT, 0), done(PROJECT, 1))
    assert handle(scheduled, done(SCATTER, 1)) == []  # 0 has not scattered
    assert handle(scheduled, done(SCATTER, 0)) == [Gather(train(1), GATHER, 0), Gather(train(1), GATHER, 1)]


def test_the_last_task_waits_until_the_interval_may_end():
    scheduled, pass_ = scheduler({1: (1,)}, num_intervals=2), train(2)
    handle(scheduled, IntervalsMayEnd(3), ClockAdvanced(pass_))
    assert walk(scheduled, pass_, range(LAST), 1) == []
    assert handle(scheduled, IntervalsMayEnd(2)) == [], "told late"
    assert handle(scheduled, IntervalsMayEnd(4)) == [Apply(pass_, LAST, 1, 1)]
    assert handle(scheduled, done(LAST, 1, pass_)) == [ReportFinished(pass_, 1)]
    assert handle(scheduled, ClockAdvanced(evaluate(2))) == [Apply(evaluate(2), PROJECT, 1, 1)]
    assert walk(scheduled, evaluate(2), range(4), 1) == [ReportFinished(evaluate(2), 1)]


def test_pipe_does_not_wait_for_rows_that_nobody_here_reads():
    scheduled = scheduler()
    handle(scheduled, ClockAdvanced(train(1)))
    assert walk(scheduled, train(1), (PROJECT, SCATTER), 0) == [Gather(train(1), GATHER, 0)]
    assert handle(scheduled, done(GATHER, 0)) == [Apply(train(1), LOSS, 0, 1)]


def test_a_gather_waits_for_the_ghosts_it_reads_and_for_those_of_this_pass_only():
    scheduled = scheduler({1: (0, 1)})
    handle(scheduled, ClockAdvanced(train(1)))
    assert walk(scheduled, train(1), (PROJECT, SCATTER), 1) == []
    assert handle(scheduled, GhostRowsArrived(evaluate(1), "source1", 0)) == []
    assert handle(scheduled, GhostRowsArrived(train(1), "backward1", 0)) == []
    assert handle(scheduled, GhostRowsArrived(train(1), "source1", 0)) == [Gather(train(1), GATHER, 1)]


def test_ghosts_may_come_before_their_pass_is_opened_here():
    scheduled = scheduler({1: (0, 1)})
    assert handle(scheduled, GhostRowsArrived(train(1), "source1", 0)) == []
    handle(scheduled, ClockAdvanced(train(1)), GhostRowsArrived(evaluate(1), "source1", 0))
    assert walk(scheduled, train(1), (PROJECT, SCATTER), 1) == [Gather(train(1), GATHER, 1)]
    walk(scheduled, train(1), (GATHER, LOSS, SCATTER_BACK), 1)
    handle(scheduled, GhostRowsArrived(train(1), "backward1", 0))
    assert walk(scheduled, train(1), (GATHER_BACK, LAST), 1) == [ReportFinished(train(1), 1)]
    handle(scheduled, ClockAdvanced(evaluate(1)))
    assert walk(scheduled, evaluate(1), (PROJECT, SCATTER), 1) == [Gather(evaluate(1), GATHER, 1)]


def test_ghosts_of_a_pass_that_is_over_change_nothing():
    scheduled = scheduler({1: (0, 1)})
    handle(scheduled, ClockAdvanced(train(2)))
    walk(scheduled, train(2), (PROJECT, SCATTER), 1)
    assert handle(scheduled, GhostRowsArrived(train(1), "source1", 0)) == []
    assert handle(scheduled, GhostRowsArrived(train(2), "source1", 0)) == [Gather(train(2), GATHER, 1)]


def test_the_two_directions_are_apart():
    scheduled = Scheduler(
        programs(),
        feeds=({0: (), 1: (0,)}, {0: (1,), 1: ()}),
        num_intervals=2,
        mode="pipe",
        places={"graph": 8, "tensor": 8},
    )
    handle(scheduled, ClockAdvanced(train(1)))
    assert walk(scheduled, train(1), (PROJECT, SCATTER), 0) == [Gather(train(1), GATHER, 0)]
    walk(scheduled, train(1), (PROJECT, SCATTER), 1)
    assert walk(scheduled, train(1), (GATHER, LOSS, SCATTER_BACK), 0) == []  # ∇Gather of 0 reads 1
    assert walk(scheduled, train(1), (GATHER, LOSS, SCATTER_BACK), 1) == [
        Gather(train(1), GATHER_BACK, 0),
        Gather(train(1), GATHER_BACK, 1),
    ]


# ---- sync: every step waits for all


def test_sync_waits_before_every_step():
    scheduled = scheduler(mode="sync")
    handle(scheduled, ClockAdvanced(train(1)))
    for position in range(6):
        assert handle(scheduled, done(position, 0)) == []
        assert {command.position for command in handle(scheduled, done(position, 1))} == {position + 1}
    assert handle(scheduled, done(LAST, 1)) == [ReportFinished(train(1), 1)]
    assert handle(scheduled, done(LAST, 0)) == [ReportFinished(train(1), 0)]


def test_sync_waits_for_intervals_of_other_graph_servers_before_a_gather():
    """Also for those whose rows are not read here."""
    scheduled = scheduler({0: (0,)}, num_intervals=3, mode="sync")
    handle(scheduled, ClockAdvanced(train(1)))
    assert walk(scheduled, train(1), (PROJECT, SCATTER), 0) == []
    assert handle(scheduled, GhostRowsArrived(train(1), "source1", 2)) == []
    assert handle(scheduled, GhostRowsArrived(train(1), "source1", 1)) == [Gather(train(1), GATHER, 0)]


# ---- queues


def test_the_furthest_on_goes_first():
    feeds = dict.fromkeys(range(3), ())
    scheduled = scheduler(feeds, num_intervals=3, places=1)
    assert handle(scheduled, ClockAdvanced(train(1))) == [Apply(train(1), PROJECT, 0, 1)]
    assert handle(scheduled, done(PROJECT, 0)) == [Scatter(train(1), SCATTER, 0), Apply(train(1), PROJECT, 1, 1)]
    assert handle(scheduled, done(SCATTER, 0)) == [Gather(train(1), GATHER, 0)]
    assert handle(scheduled, done(GATHER, 0)) == []  # the only tensor place is taken by 1
    # 0 waits for its fourth step, 2 for its first.
    assert handle(scheduled, done(PROJECT, 1)) == [Scatter(train(1), SCATTER, 1), Apply(train(1), LOSS, 0, 1)]


@pytest.mark.parametrize("places", [1, 2, 3])
def test_places_are_respected(places: int):
    feeds = dict.fromkeys(range(7), ())
    scheduled = scheduler(feeds, num_intervals=7, places=places)
    running: list[Any] = handle(scheduled, ClockAdvanced(train(1)))
    reported = 0
    while running:
        tensor = sum(isinstance(command, Apply) for command in running)
        assert tensor <= places
        assert len(running) - tensor <= places
        command = running.pop(0)
        following = handle(scheduled, done(command.position, command.interval))
        reported += sum(isinstance(one, ReportFinished) for one in following)
        running += [one for one in following if not isinstance(one, ReportFinished)]
    assert reported == 7


# ---- repeats and losses


def test_a_repeated_stage_done_is_ignored():
    scheduled = scheduler({0: (0,)}, num_intervals=1)
    handle(scheduled, ClockAdvanced(train(1)), done(PROJECT))
    assert handle(scheduled, done(PROJECT)) == []
    assert handle(scheduled, done(SCATTER)) == [Gather(train(1), GATHER, 0)]
    assert handle(scheduled, done(PROJECT)) == []
    assert handle(scheduled, done(SCATTER)) == []


def test_only_the_first_result_of_the_open_step_is_accepted():
    scheduled = scheduler({0: (0,)}, num_intervals=1)
    assert not scheduled.accepts(done(PROJECT))
    handle(scheduled, ClockAdvanced(train(1)))
    assert scheduled.accepts(done(PROJECT))
    assert not scheduled.accepts(done(SCATTER))
    assert not scheduled.accepts(done(PROJECT, interval=9))
    assert not scheduled.accepts(done(PROJECT, pass_=evaluate(1)))
    handle(scheduled, done(PROJECT))
    assert not scheduled.accepts(done(PROJECT))


def test_a_result_of_an_older_pass_is_not_taken_for_this_one():
    scheduled = scheduler({0: (0,)}, num_intervals=1)
    handle(scheduled, ClockAdvanced(train(1)))
    walk(scheduled, train(1), range(7))
    handle(scheduled, ClockAdvanced(train(2)))
    assert handle(scheduled, done(PROJECT, pass_=train(1))) == []
    assert handle(scheduled, done(PROJECT, pass_=train(2))) == [Scatter(train(2), SCATTER, 0)]


def test_the_clock_may_say_it_twice():
    scheduled = scheduler({0: (0,)}, num_intervals=1)
    handle(scheduled, ClockAdvanced(train(1)))
    assert handle(scheduled, ClockAdvanced(train(1))) == []
    walk(scheduled, train(1), range(7))
    assert handle(scheduled, ClockAdvanced(train(1))) == []
    handle(scheduled, ClockAdvanced(evaluate(1)))
    assert handle(scheduled, ClockAdvanced(train(1))) == []


def test_a_lost_task_is_relaunched_as_its_second_attempt():
    scheduled = scheduler({0: (0,)}, num_intervals=1)
    handle(scheduled, ClockAdvanced(train(1)))
    lost = TaskLost(train(1), PROJECT, 0)
    assert handle(scheduled, lost) == [Apply(train(1), PROJECT, 0, 2)]
    assert handle(scheduled, lost) == [Apply(train(1), PROJECT, 0, 3)]
    # The first attempt's result arrives after all.
    assert handle(scheduled, done(PROJECT)) == [Scatter(train(1), SCATTER, 0)]
    assert handle(scheduled, done(PROJECT)) == []
    assert handle(scheduled, lost) == []
    assert handle(scheduled, done(SCATTER), done(GATHER)) == [Apply(train(1), LOSS, 0, 1)]


def test_a_late_result_while_the_next_attempt_still_waits_is_not_taken():
    scheduled = scheduler({0: (), 1: ()}, places=1)
    handle(scheduled, ClockAdvanced(train(1)))
    walk(scheduled, train(1), (PROJECT, SCATTER, GATHER), 0)
    assert handle(scheduled, TaskLost(train(1), PROJECT, 1)) == [Apply(train(1), LOSS, 0, 1)]
    assert not scheduled.accepts(done(PROJECT, 1))
    assert handle(scheduled, done(PROJECT, 1)) == []
    assert Apply(train(1), PROJECT, 1, 2) in handle(scheduled, done(LOSS, 0))


@pytest.mark.parametrize(
    "event", [TaskLost(train(1), PROJECT, 0), TaskLost(train(1), GATHER, 1), TaskLost(evaluate(1), PROJECT, 0)]
)
def test_a_loss_of_what_does_not_run_is_ignored(event: TaskLost):
    scheduled = scheduler()
    handle(scheduled, ClockAdvanced(train(1)), done(PROJECT, 0))
    assert handle(scheduled, event) == []


# ---- the end


@pytest.mark.parametrize("reason", Reason)
def test_the_clock_ends_the_job(reason: Reason):
    assert handle(scheduler(), ClockStopped(reason)) == [Finish(reason, None)]


def test_a_failed_task_ends_the_job_with_its_error():
    scheduled, error = scheduler(), TaskCrashed("ApplyVertex0 of interval 1 raised")
    handle(scheduled, ClockAdvanced(train(1)))
    assert handle(scheduled, TaskFailed(train(1), PROJECT, 1, error)) == [Finish(Reason.FAILED, error)]


def test_a_lost_peer_ends_the_job_and_is_named():
    (finish,) = handle(scheduler(), PeerLost("graph2"))
    assert isinstance(finish, Finish)
    assert (finish.reason, str(finish.error)) == (Reason.FAILED, "graph2 is lost")


def test_after_the_end_nothing_happens():
    scheduled = scheduler({0: (0,)}, num_intervals=1)
    handle(scheduled, ClockAdvanced(train(1)), ClockStopped(Reason.STOPPED))
    assert not scheduled.accepts(done(PROJECT))
    for event in (
        done(PROJECT),
        TaskLost(train(1), PROJECT, 0),
        ClockAdvanced(train(2)),
        GhostRowsArrived(train(1), "source1", 0),
        PeerLost("graph1"),
        ClockStopped(Reason.COMPLETED),
        TaskFailed(train(1), PROJECT, 0, ValueError()),
    ):
        assert handle(scheduled, event) == []


def test_a_graph_server_without_intervals_waits_for_the_end():
    scheduled = scheduler({}, num_intervals=3)
    assert handle(scheduled, ClockAdvanced(train(1)), GhostRowsArrived(train(1), "source1", 2)) == []
    assert handle(scheduled, ClockAdvanced(evaluate(1))) == []
    assert handle(scheduled, ClockStopped(Reason.COMPLETED)) == [Finish(Reason.COMPLETED, None)]


def test_stories_say_where_every_interval_is():
    scheduled = scheduler()
    handle(scheduled, ClockAdvanced(train(1)), done(PROJECT, 1))
    first, second = scheduled.stories()
    assert (
        first
        == "interval 0, RUNNING, step 0: PASS_OPENED at step 0 train 1 · GATE_OPENED at step 0 · STARTED at step 0"
    )
    assert second.startswith("interval 1, RUNNING, step 1: ")
    assert "STAGE_DONE at step 0 ApplyVertex0+1" in second

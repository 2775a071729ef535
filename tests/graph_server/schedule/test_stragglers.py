"""When a task is late: a floor, a multiple of what its step usually takes, and a prior before anything was measured."""

from graph_server.schedule.stragglers import SMOOTHING, LateAfter, TaskTimes

LATE = LateAfter(ratio=5.0, floor_seconds=0.5, prior_seconds=20.0)


def test_before_anything_was_measured_the_prior_counts():
    assert TaskTimes(LATE).limit("a step") == 20.0
    assert TaskTimes(LateAfter(5.0, floor_seconds=30.0, prior_seconds=20.0)).limit("a step") == 30.0


def test_then_a_multiple_of_the_smoothed_time():
    times = TaskTimes(LATE)
    times.took("a step", 1.0)
    assert times.limit("a step") == 5.0
    times.took("a step", 2.0)
    assert times.limit("a step") == 5.0 * (1.0 + SMOOTHING)


def test_never_below_the_floor():
    times = TaskTimes(LATE)
    times.took("a step", 0.001)
    assert times.limit("a step") == 0.5


def test_each_step_has_a_time_of_its_own():
    times = TaskTimes(LATE)
    times.took("a step", 1.0)
    assert times.limit("another") == 20.0


def test_one_straggler_does_not_make_the_next_one_look_well():
    times = TaskTimes(LATE)
    for _ in range(20):
        times.took("a step", 1.0)
    times.took("a step", 10.0)
    assert times.limit("a step") < 10.0

"""The lease tuner against a queueing system, against what was recorded, and against anything at all."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median, mode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_server.schedule.lease_tuner import HOLD_WINDOWS, PROBE_WINDOWS, Decision, LeaseTuner, Window
from tests.examples import examples
from tests.graph_server.schedule.lease_simulation import Load, Simulation, fewest, rate, tune

BALANCED = Load()
COMPUTE = Load(compute=0.5)
GRAPH = Load(graph=0.2, cores=2)
FAR = Load(compute=0.02, transfer=0.3)
FEW = Load(compute=0.01, graph=0.05)
MOST = 24

LOADS = {"balanced": BALANCED, "compute": COMPUTE, "graph": GRAPH, "far": FAR, "few": FEW}
best_of = cache(lambda load: max(rate(load, leases) for leases in range(1, MOST + 1)))
fewest_of = cache(lambda load: fewest(load, MOST, 0.03))


def tuner(start: int = MOST, *, least: int = 1, most: int = MOST) -> LeaseTuner:
    return LeaseTuner(least=least, most=most, start=start)


def tuned(load: Load, windows: int = 50, start: int = MOST, seed: int = 0) -> int:
    """The number it mostly wants in the second half."""
    made = tuner(start)
    simulation, targets = Simulation(load, made.target, seed), list[int]()
    for _ in range(windows):
        tune(simulation, made, 1)
        targets.append(made.target)
    return mode(targets[windows // 2 :])


# ---- it finds the number


@pytest.mark.parametrize("start", [MOST, 3])
@pytest.mark.parametrize("name", LOADS)
def test_it_finds_the_fewest_that_are_as_fast_as_the_best(name: str, start: int):
    load = LOADS[name]
    found = tuned(load, start=start)
    assert rate(load, found) >= 0.93 * best_of(load)
    assert found <= 1.25 * fewest_of(load) + 2


@pytest.mark.parametrize("name", LOADS)
def test_noise_does_not_mislead_it_far(name: str):
    load = LOADS[name]
    for seed in range(2):
        found = tuned(replace(load, noise=0.3), seed=seed)
        assert rate(load, found) >= 0.85 * best_of(load)
        assert found <= 1.5 * fewest_of(load) + 4


def test_the_loads_ask_for_different_numbers():
    """Else finding them would mean little."""
    assert [fewest_of(load) for load in LOADS.values()] == [24, 21, 1, 11, 2]


@pytest.mark.parametrize("name", LOADS)
def test_it_does_not_oscillate(name: str):
    """Once found, one number is tried now and then, ever more seldom."""
    made = tuner()
    simulation = Simulation(replace(LOADS[name], noise=0.2), MOST)
    tune(simulation, made, 50)
    settled, targets = made.target, []
    for _ in range(150):
        tune(simulation, made, 1)
        targets.append(made.target)
    moves = sum(before != after for before, after in pairwise([settled, *targets]))
    assert moves <= 10
    assert max(targets) - min(targets) <= max(3, settled // 3)


# ---- it follows what changes


def test_when_graph_stages_become_the_bottleneck_leases_go():
    made = tuner()
    simulation = Simulation(BALANCED, MOST)
    tune(simulation, made, 40)
    before, simulation.load = made.target, replace(BALANCED, graph=0.5)
    decisions = tune(simulation, made, 40)
    assert before >= 18
    assert made.target <= 4
    assert decisions[0].reason.startswith("slots were ")


def test_when_tensor_tasks_become_the_bottleneck_leases_come():
    made = tuner()
    simulation = Simulation(GRAPH, MOST)
    tune(simulation, made, 40)
    before, simulation.load = made.target, COMPUTE
    decisions = tune(simulation, made, 80)
    assert before <= 2
    assert made.target >= 18
    assert any("more: " in decision.reason and "tasks wait" in decision.reason for decision in decisions)


def test_fewer_is_what_idle_slots_lead_to():
    made = tuner()
    decisions = tune(Simulation(FEW, MOST), made, 30)
    targets = [decision.target for decision in decisions]
    assert targets[0] == MOST // 2, "at most half of them at once"
    assert sorted(targets[:3], reverse=True) == targets[:3]
    assert decisions[0].reason.startswith("fewer: slots are ")
    assert decisions[0].seen.leases == MOST


# ---- one window at a time


def window(rate: float = 10.0, *, leases: int = 8, busy: float = 0.8, throttled: int = 0, **other: float) -> Window:
    seen = {"waiting": 0.0, "cores": 0.5, **other}
    return Window(seconds=10.0, tasks=round(10 * rate), leases=leases, busy=busy, throttled=throttled, **seen)


def feed(made: LeaseTuner, *windows: Window, now: float = 0.0) -> list[Decision]:
    """Ten seconds each."""
    decided = [made.decide(one, now + 10.0 * number) for number, one in enumerate(windows)]
    return [decision for decision in decided if decision is not None]


def settled(target: int = 8, most: int = 8) -> LeaseTuner:
    made = tuner(target, most=most)
    (decision,) = feed(made, *[window()] * (1 + PROBE_WINDOWS))
    assert decision.target == target
    assert decision.reason == f"the fewest within 3% of the best; tasks/s: 10 with {target}"
    return made


def test_the_first_window_is_not_counted_and_three_are_needed():
    made = tuner(8, most=8)
    assert feed(made, window(1.0, busy=0.1), *[window()] * (PROBE_WINDOWS - 1)) == []
    assert [decision.target for decision in feed(made, window())] == [8]


def test_one_bad_window_is_no_reason():
    made = settled()
    assert feed(made, window(2.0, busy=0.2), *[window()] * 5) == []


def test_what_is_much_slower_is_left_at_once():
    made = tuner(8, most=8)
    (down,) = feed(made, *[window(busy=0.2)] * (1 + PROBE_WINDOWS))
    assert down.target == 4
    (up,) = feed(made, window(leases=4, busy=0.9), window(5.0, leases=4, busy=0.9))
    assert (up.target, up.reason) == (6, "more: 5 tasks/s with 4, 10 with 8")


def test_it_looks_again_after_a_hold_and_the_next_hold_is_longer():
    made = tuner(8, most=8)
    feed(made, *[window(busy=0.5)] * (1 + PROBE_WINDOWS))
    feed(made, *[window(5.0, leases=5, busy=0.9)] * 2)
    asked = [made.target]
    looked: list[int] = []
    for number in range(8 * HOLD_WINDOWS):
        slow = made.target < 8
        feed(made, window(5.0 if slow else 10.0, leases=made.target, busy=0.9 if slow else 0.5), now=10.0 * number)
        looked += [number] if made.target < 8 and asked[-1] == 8 else []
        asked.append(made.target)
    assert len(looked) >= 2
    gaps = [after - before for before, after in pairwise(looked)]
    assert gaps == sorted(gaps)
    assert gaps[0] > HOLD_WINDOWS


def test_a_queue_asks_for_more_but_not_while_cores_are_busy():
    made = settled(4, most=16)
    assert feed(made, *[window(leases=4, waiting=3.0, cores=1.5)] * 5) == []
    (up,) = feed(made, *[window(leases=4, waiting=3.0)] * PROBE_WINDOWS, now=50.0)
    assert up.target == 6
    assert up.reason.startswith("a queue grew; more: 3.0 tasks wait, slots are 80% full, cores ")


def test_more_that_do_not_help_are_not_kept():
    made = settled(4, most=16)
    feed(made, *[window(leases=4, waiting=3.0)] * PROBE_WINDOWS)
    back = feed(made, *[window(10.1, leases=6, busy=0.6)] * (1 + PROBE_WINDOWS))[-1]
    assert back.target == 4
    assert feed(made, *[window(leases=4, waiting=3.0)] * 6) == [], "it is known to be no faster"


def test_what_the_service_does_not_grant_is_not_wanted():
    made = tuner(16, most=16)
    (limited,) = feed(made, window(leases=5, throttled=3))
    assert (limited.target, limited.reason) == (5, "throttled 3 times: no more are granted")
    feed(made, *[window(leases=5, waiting=9.0)] * 8)
    assert made.target == 5
    assert feed(made, window(leases=5, throttled=1), window(leases=4, throttled=1))[0].target == 4


def test_the_service_is_asked_again_after_a_hold():
    made = tuner(16, most=16)
    feed(made, window(leases=5, throttled=3))
    asked = [feed(made, window(leases=5, waiting=9.0), now=10.0 * number) for number in range(3 * HOLD_WINDOWS)]
    assert max(decision.target for decisions in asked for decision in decisions) > 5


def test_leases_that_nobody_needs_are_not_counted():
    """Where cores take most tasks, few leases are ever open, whatever is wanted."""
    made = tuner(16, most=16)
    (first,) = feed(made, *[window(leases=3, busy=0.3)] * (1 + PROBE_WINDOWS))
    assert first.target <= 2


# ---- what was recorded

RECORDED = json.loads((Path(__file__).parent / "recorded_windows.json").read_text(encoding="utf-8"))
"""Windows of `dorylus train cora --backend lambda --num-intervals 12`, on two cores that had other work, too; another
number of leases was set every four windows."""


def recorded(name: str) -> dict[int, list[Window]]:
    """By the number of leases."""
    seen: dict[int, list[Window]] = {}
    for one in RECORDED[name]:
        seen.setdefault(one["leases"], []).append(Window(**one))
    return seen


def nearest(seen: dict[int, list[Window]], target: int) -> list[Window]:
    return seen[min(seen, key=lambda leases: abs(leases - target))]


@pytest.mark.parametrize("name", RECORDED)
def test_on_two_cores_it_comes_to_few_leases_that_are_no_slower(name: str):
    """Twelve functions there compute no faster than the cores do, and cost twelve times as much."""
    seen, made = recorded(name), tuner(12, most=12)
    targets = []
    for number in range(120):
        among = nearest(seen, made.target)
        made.decide(replace(among[number % len(among)], leases=made.target), float(number))
        targets.append(made.target)
    usual = {leases: median(window.rate for window in windows) for leases, windows in seen.items()}
    assert fmean(targets[60:]) <= 6
    assert fmean(usual[nearest(seen, target)[0].leases] for target in targets[60:]) >= 0.7 * max(usual.values())
    assert sum(before != after for before, after in pairwise(targets[60:])) <= 12


# ---- anything at all

windows = st.builds(
    Window,
    seconds=st.floats(1.0, 100.0),
    tasks=st.integers(0, 10_000),
    leases=st.integers(0, 300),
    busy=st.floats(0.0, 1.0),
    waiting=st.floats(0.0, 500.0),
    cores=st.floats(0.0, 50.0),
    throttled=st.integers(0, 3),
)


@settings(max_examples=examples(100))
@given(
    bounds=st.tuples(st.integers(1, 100), st.integers(1, 100)).map(sorted),
    start=st.integers(-5, 200),
    seen=st.lists(st.tuples(windows, st.floats(0.0, 500.0)), max_size=60),
)
def test_the_bounds_hold_whatever_is_seen(bounds: list[int], start: int, seen: list[tuple[Window, float]]):
    least, most = bounds
    made, now = tuner(start, least=least, most=most), 0.0
    for one, passed in seen:
        now += passed
        assert least <= made.target <= most
        decision = made.decide(one, now)
        assert decision is None or (decision.target == made.target and decision.reason)
    assert least <= made.target <= most


def test_with_nothing_to_choose_it_chooses_nothing():
    made = tuner(7, least=7, most=7)
    decisions = tune(Simulation(FEW, 7), made, 60)
    assert {decision.target for decision in decisions} == {7}

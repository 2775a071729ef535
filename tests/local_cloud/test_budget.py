"""The budget stops a job while its end can be paid for, in every course of events that it can know of."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import SpecError
from common.job_spec import JobSpec
from local_cloud.budget import END_SECONDS, Budget, Pace, Places
from local_cloud.costs import run_cost
from local_cloud.run_result import Totals
from local_cloud.spending import places_of

FIRST_MINUTE = 2 * 60 * 0.29 / 3600
"""A graph server and a parameter server."""


def spec_of(**budget: float) -> JobSpec:
    return JobSpec.model_validate({"dataset": {"path": "cora"}, "budget": budget})


def pace_of(*moments: float) -> Pace:
    pace = Pace()
    for moment in moments:
        pace.epoch_ended(moment)
    return pace


# ---- single decisions


def test_without_a_budget_nothing_stops():
    budget = Budget(spec_of())
    budget.check_start()
    assert budget.reason_to_stop(pace_of(1.0, 2.0), 1e9, Totals(lambda_gb_seconds=1e9), 100) is None


def test_the_first_epoch_tells_nothing_of_the_others():
    pace = pace_of()
    assert pace.longest(100.0) == 0.0
    pace.epoch_ended(30.0)
    assert pace.longest(31.0) == 1.0
    pace.epoch_ended(34.0)
    assert pace.longest(35.0) == 4.0
    for moment in range(36, 50):
        pace.epoch_ended(float(moment))
    assert pace.longest(49.5) == 1.0


def pace_of_two_seconds(now: float) -> Pace:
    """An epoch has just ended."""
    return pace_of(now - 4.0, now - 2.0, now)


def test_time_runs_out():
    budget, last = Budget(spec_of(max_runtime_seconds=100)), 100 - END_SECONDS - 3 * 2.0
    assert budget.reason_to_stop(pace_of_two_seconds(last), last, Totals(), 0) is None
    assert budget.reason_to_stop(pace_of_two_seconds(last + 0.5), last + 0.5, Totals(), 0) == (
        "budget.max_runtime_seconds = 100: the end would come after 100 s"
    )


def test_leases_that_nobody_has_metered_yet_count_up_to_their_bound():
    places, used = Places(count=4, memory_mb=2048, bound_seconds=50.0), Totals(lambda_gb_seconds=700.0)
    pace, until_end = pace_of_two_seconds(40.0), END_SECONDS + 3 * 2.0

    def usd(seconds_in_places: float) -> float:
        """Within the servers' first minute."""
        return FIRST_MINUTE + (700.0 + 2 * seconds_in_places) * 0.0000133334 + 0.0000012

    for open_leases in range(5):
        risk = usd(open_leases * 40.0 + 4 * until_end)
        enough, too_little = (Budget(spec_of(max_cost_usd=risk + more), places) for more in (1e-5, -1e-5))
        assert enough.reason_to_stop(pace, 40.0, used, open_leases) is None
        assert too_little.reason_to_stop(pace, 40.0, used, open_leases) == (
            f"budget.max_cost_usd = {risk - 1e-5:g}: at the end it could have cost {risk:.4f} USD"
        )
    assert Places(4, 1024, 50.0).unmetered_gb_seconds(2, elapsed=400.0, until_end=10.0) == 2 * 50.0 + 4 * 10.0


def test_what_a_resumed_run_took_before_counts():
    spec = spec_of(max_cost_usd=1.0, max_runtime_seconds=100)
    assert Budget(spec, seconds_before=80.0).reason_to_stop(pace_of(), 10.0, Totals(), 0) is None
    assert Budget(spec, seconds_before=90.0).reason_to_stop(pace_of(), 10.0, Totals(), 0) is not None
    assert Budget(spec, usd_before=0.995).reason_to_stop(pace_of(), 10.0, Totals(), 0) is not None


def test_a_start_that_is_not_paid_for_is_refused():
    with pytest.raises(SpecError) as error:
        Budget(spec_of(max_cost_usd=0.005)).check_start()
    assert str(error.value) == (
        "budget.max_cost_usd = 0.005 does not pay for a start\n"
        f"  why: the servers' first minute costs {FIRST_MINUTE:.4f} USD\n"
        "  fix: give it more, or take a smaller cluster.instance_type"
    )
    Budget(spec_of(max_cost_usd=0.02)).check_start()


def test_a_run_that_has_used_up_its_budget_is_not_resumed():
    with pytest.raises(SpecError, match=r"and the run has cost 0.0150 USD before"):
        Budget(spec_of(max_cost_usd=0.02), usd_before=0.015).check_start()
    with pytest.raises(SpecError) as error:
        Budget(spec_of(max_runtime_seconds=60), seconds_before=61.0).check_start()
    assert str(error.value) == (
        "budget.max_runtime_seconds = 60 is used up\n  why: the run has taken 61 s before\n  fix: give it more"
    )


def test_functions_have_places_where_there_are_functions():
    assert places_of(spec_of()) == Places()
    tree = {"dataset": {"path": "cora"}, "backend": {"name": "lambda", "max_lambdas": 4, "memory_mb": 512}}
    assert places_of(JobSpec.model_validate(tree)) == Places(4, 512, 270.0)


# ---- whole courses


@dataclass
class Lease:
    opened: float
    until: float


class Course:
    """A job that is looked at every second. After its last epoch come the results: `results` epochs and `end` s."""

    def __init__(self, places: Places, epochs: list[float], leases: list[float], results: float, end: float) -> None:
        self.places, self.epochs, self.lease_seconds, self.results, self.end = places, epochs, leases, results, end
        self.open: list[Lease] = []
        self.metered, self.requests = 0.0, 0
        self.stopped_early = False

    def run(self, budget: Budget) -> tuple[float, Totals]:
        """Seconds and use until everything has ended."""
        pace, now = Pace(), 0.0
        for seconds in self.epochs:
            ends = now + seconds
            while now < ends:
                self._move_leases(now)
                totals = Totals(lambda_gb_seconds=self.metered, lambda_requests=self.requests)
                stop = budget.reason_to_stop(pace, now, totals, len(self.open)) is not None
                self.stopped_early = self.stopped_early or stop
                now = min(now + 1.0, ends)
            pace.epoch_ended(now)
            if self.stopped_early:
                break
        now += self.results * seconds + self.end
        for lease in list(self.open):
            self._close(lease, min(now, lease.until))
        return now, Totals(lambda_gb_seconds=self.metered, lambda_requests=self.requests)

    def _move_leases(self, now: float) -> None:
        for lease in [lease for lease in self.open if lease.until <= now]:
            self._close(lease, lease.until)
        while len(self.open) < self.places.count:
            seconds = self.lease_seconds[self.requests % len(self.lease_seconds)]
            self.requests += 1
            self.open.append(Lease(now, now + min(seconds, self.places.bound_seconds)))

    def _close(self, lease: Lease, at: float) -> None:
        self.open.remove(lease)
        self.metered += (at - lease.opened) * self.places.memory_mb / 1024


PLACES = st.builds(
    Places, count=st.integers(0, 20), memory_mb=st.sampled_from([128, 1769, 10240]), bound_seconds=st.floats(5, 300)
)
STEADY = st.floats(0.2, 30.0).flatmap(
    lambda usual: st.lists(st.floats(usual * 0.85, usual * 1.15), min_size=12, max_size=40)
)
SHARE = st.floats(0.0, 1.0)
"""Of what a job without a budget would take, after three epochs: so many it takes to know them."""


@given(
    places=PLACES,
    epochs=STEADY,
    leases=st.lists(st.floats(1.0, 300.0), min_size=1, max_size=9),
    results=st.floats(0.0, 1.0),
    share=SHARE,
)
def test_what_is_spent_at_the_end_is_below_the_cap(
    places: Places, epochs: list[float], leases: list[float], results: float, share: float
):
    spec = spec_of()

    def course(epochs: list[float], cap: float | None) -> float:
        budget = Budget(spec_of() if cap is None else spec_of(max_cost_usd=cap), places)
        seconds, used = Course(places, epochs, leases, results, END_SECONDS - 1.0).run(budget)
        return run_cost(spec, used, seconds).usd

    known, all_of_it = course(epochs[:4], None), course(epochs, None)
    cap = known + share * (all_of_it - known)
    assert course(epochs, cap) <= cap


@given(epochs=STEADY, results=st.floats(0.0, 1.0), share=SHARE)
def test_the_end_comes_in_time(epochs: list[float], results: float, share: float):
    known = sum(epochs[:4]) + 2 * max(epochs) + END_SECONDS
    limit = math.ceil(known + share * max(0.0, sum(epochs) - known))
    course = Course(Places(), epochs, [1.0], results, END_SECONDS - 1.0)
    seconds, _ = course.run(Budget(spec_of(max_runtime_seconds=limit)))
    assert seconds <= limit
    assert not course.stopped_early or limit - seconds <= END_SECONDS + 5 * max(epochs) + 2  # nor much too early

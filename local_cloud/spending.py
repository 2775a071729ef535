"""Follows what a run costs while it goes, tells whoever watches, and asks the run to stop while its end is paid for."""

import time
from collections.abc import Callable
from dataclasses import replace

from common.job_spec import JobSpec
from common.pricing import Cost, on_demand, prices_of
from local_cloud.budget import Budget, Pace, Places
from local_cloud.cluster import FUNCTION_SECONDS_MORE, WITH_FUNCTIONS
from local_cloud.costs import HERE, Site, run_cost
from local_cloud.lambda_process import LOCAL_CONCURRENCY
from local_cloud.observer import Observer
from local_cloud.run_result import Load, Status, Totals
from local_cloud.summary import Summary


class Spending:
    """`began`: time.monotonic() of the command; `earlier`: of a run that is resumed; `concurrency`: of functions."""

    def __init__(
        self,
        spec: JobSpec,
        observer: Observer,
        *,
        began: float,
        earlier: Summary | None = None,
        concurrency: int = LOCAL_CONCURRENCY,
        site: Site = HERE,
    ) -> None:
        self._spec, self._observer, self._began = spec, observer, began
        self._usd_before = (earlier.cost_usd or 0.0) if earlier is not None else 0.0
        self._places, self._site = places_of(spec, concurrency), site
        self._budget = Budget(
            spec,
            self._places,
            seconds_before=earlier.seconds if earlier is not None else 0.0,
            usd_before=on_demand(earlier.bill, prices_of(site.region)) if earlier is not None else 0.0,
            site=site,
        )
        self._last = Load(0, 0, Totals())
        self._pace = Pace()
        self._stop: Callable[[str], None] | None = None

    def check_start(self) -> None:
        """Raises SpecError if not even the start can be paid for."""
        self._budget.check_start()

    def stoppable(self, stop: Callable[[str], None]) -> None:
        """Of each generation."""
        self._stop = stop

    def epoch_ended(self) -> None:
        self._pace.epoch_ended(self._elapsed())

    def cost(self, totals: Totals, seconds: float) -> Cost:
        """Of a run that has ended after so many."""
        return run_cost(self._spec, totals, seconds + self._site.teardown_seconds, self._site)

    def seen(self) -> Totals:
        """Of a run without a result: what was counted when it was last looked at, and open leases as old as can be."""
        totals, leases = self._last.totals, self._last.open_leases
        more = self._places.unmetered_gb_seconds(leases, self._elapsed(), 0.0)
        return replace(
            totals,
            lambda_gb_seconds=totals.lambda_gb_seconds + more,
            lambda_requests=totals.lambda_requests + leases,
        )

    def load(self, load: Load) -> None:
        self._last = load
        elapsed = self._elapsed()
        usd = self._usd_before + run_cost(self._spec, load.totals, elapsed, self._site).usd
        self._observer.status(Status(load.tasks_in_flight, usd))
        reason = self._budget.reason_to_stop(self._pace, elapsed, load.totals, load.open_leases)
        if reason is not None and self._stop is not None:
            self._stop(reason)
            self._stop = None
            self._observer.note(f"stopping after this epoch: {reason}")

    def _elapsed(self) -> float:
        return time.monotonic() - self._began


def places_of(spec: JobSpec, concurrency: int = LOCAL_CONCURRENCY) -> Places:
    backend = spec.backend
    if backend.name not in WITH_FUNCTIONS:
        return Places()
    bound = backend.lease_seconds + FUNCTION_SECONDS_MORE
    return Places(min(backend.max_lambdas, concurrency), backend.memory_mb, bound)

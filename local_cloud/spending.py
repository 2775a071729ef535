"""Follows what a run costs while it goes, tells whoever watches, and asks the run to stop while its end is paid for."""

import time
from collections.abc import Callable

from common.job_spec import JobSpec
from local_cloud.budget import Budget, Pace, Places
from local_cloud.cluster import FUNCTION_SECONDS_MORE, WITH_FUNCTIONS
from local_cloud.costs import run_cost
from local_cloud.lambda_process import LOCAL_CONCURRENCY
from local_cloud.observer import Observer
from local_cloud.run_result import Load, Status
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
    ) -> None:
        self._spec, self._observer, self._began = spec, observer, began
        self._usd_before = (earlier.cost_usd or 0.0) if earlier is not None else 0.0
        seconds = earlier.seconds if earlier is not None else 0.0
        self._budget = Budget(spec, places_of(spec, concurrency), seconds_before=seconds, usd_before=self._usd_before)
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

    def load(self, load: Load) -> None:
        elapsed = self._elapsed()
        usd = self._usd_before + run_cost(self._spec, load.totals, elapsed).usd
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

"""The budget: a job is asked to stop while its end can still be paid for. Pure; time and use are arguments.

What the end will have cost, if the job is asked to stop now, is at most

    spent so far
  + every open lease up to its bound: it is not metered before it ends
  + servers, and functions in every place, until the next pause, its checkpoint and the results
  + servers, and what is billed beside them, until they are torn down

A spot instance counts as one on demand, which its price cannot pass: what the market asks until then nobody knows.

How long that takes is told from the epochs before. A job stops at a pause only, never within an epoch: if epochs
suddenly take much longer, or the first one is too much already, the end is late by that.
"""

from collections import deque
from dataclasses import dataclass

from common.errors import SpecError
from common.job_spec import JobSpec
from common.pricing import MB_PER_GB
from common.s3_requests import S3_WRITES
from local_cloud.costs import HERE, Site, run_cost
from local_cloud.run_result import Totals

EPOCHS_TO_THE_END = 3
"""The rest of the one that runs, its evaluation, and the predictions."""
END_SECONDS = 5.0
"""The checkpoint, the results, and the end of all processes."""
REMEMBERED = 10


@dataclass(frozen=True)
class Places:
    """Where functions run. `bound_seconds`: after which a lease is over in any case."""

    count: int = 0
    memory_mb: int = 0
    bound_seconds: float = 0.0

    def unmetered_gb_seconds(self, open_leases: int, elapsed: float, until_end: float) -> float:
        """The most that is still to be metered: what runs now, as old as can be, and all places to the end."""
        seconds = open_leases * min(elapsed, self.bound_seconds) + self.count * until_end
        return seconds * self.memory_mb / MB_PER_GB


class Pace:
    """How long epochs take. The first is left out: it also makes the kernels."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._seconds: deque[float] = deque(maxlen=REMEMBERED)

    def epoch_ended(self, elapsed: float) -> None:
        if self._last is not None:
            self._seconds.append(elapsed - self._last)
        self._last = elapsed

    def longest(self, elapsed: float) -> float:
        """Of the last ones, and of the one that runs; 0 before the first has ended."""
        running = 0.0 if self._last is None else elapsed - self._last
        return max(running, *self._seconds, 0.0)


class Budget:
    """Of one job. `seconds_before` and `usd_before`: what the run took before it was resumed."""

    def __init__(
        self,
        spec: JobSpec,
        places: Places | None = None,
        *,
        seconds_before: float = 0.0,
        usd_before: float = 0.0,
        site: Site = HERE,
    ) -> None:
        cluster = spec.cluster.model_copy(update={"spot": False})
        self._spec, self._places = spec.model_copy(update={"cluster": cluster}), places or Places()
        self._site = site
        self._seconds_before, self._usd_before = seconds_before, usd_before
        staleness = spec.training.staleness if spec.training.mode == "async" else 0
        self._epochs_to_the_end = EPOCHS_TO_THE_END + staleness

    def check_start(self) -> None:
        """Raises SpecError if not even the start can be paid for."""
        cap, limit = self._spec.budget.max_cost_usd, self._spec.budget.max_runtime_seconds
        least = run_cost(self._spec, Totals(), self._site.teardown_seconds, self._site).usd
        if cap is not None and self._usd_before + least > cap:
            before = f", and the run has cost {self._usd_before:.4f} USD before" if self._usd_before else ""
            raise SpecError(
                f"budget.max_cost_usd = {cap:g} does not pay for a start",
                why=f"the servers' first minute costs {least:.4f} USD{before}",
                fix="give it more, or take a smaller cluster.instance_type",
            )
        if limit is not None and self._seconds_before >= limit:
            raise SpecError(
                f"budget.max_runtime_seconds = {limit} is used up",
                why=f"the run has taken {self._seconds_before:.0f} s before",
                fix="give it more",
            )

    def seconds_to_the_end(self, pace: Pace, elapsed: float) -> float:
        return self._epochs_to_the_end * pace.longest(elapsed) + END_SECONDS

    def reason_to_stop(self, pace: Pace, elapsed: float, totals: Totals, open_leases: int) -> str | None:
        """None: go on. `elapsed` and `totals` are of this start of the job."""
        until_end = self.seconds_to_the_end(pace, elapsed)
        seconds = self._seconds_before + elapsed + until_end
        limit, cap = self._spec.budget.max_runtime_seconds, self._spec.budget.max_cost_usd
        if limit is not None and seconds > limit:
            return f"budget.max_runtime_seconds = {limit}: the end would come after {seconds:.0f} s"
        if cap is not None and (usd := self._usd_at_the_end(elapsed, until_end, totals, open_leases)) > cap:
            return f"budget.max_cost_usd = {cap:g}: at the end it could have cost {usd:.4f} USD"
        return None

    def _usd_at_the_end(self, elapsed: float, until_end: float, totals: Totals, open_leases: int) -> float:
        more = Totals(
            {S3_WRITES: self._site.last_writes},
            lambda_gb_seconds=self._places.unmetered_gb_seconds(open_leases, elapsed, until_end),
            lambda_requests=open_leases + self._places.count,
        )
        seconds = elapsed + until_end + self._site.teardown_seconds
        return self._usd_before + run_cost(self._spec, totals + more, seconds, self._site).usd

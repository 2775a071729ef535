"""Which weights version is the best so far, and for how many evaluations nothing has improved.

The best is that of the best valid metric; ties go to the earliest. Without a valid mask the last version is the best.
Improvement (for early stopping) is measured against the last version that improved by more than `min_delta`.
"""

from parameter_server.saved_state import ClockRecord


class BestVersion:
    def __init__(self, *, higher_is_better: bool = True, min_delta: float = 0.0) -> None:
        self._sign = 1.0 if higher_is_better else -1.0
        self._min_delta = min_delta
        self.reference: float | None = None
        self.version: int | None = None
        self.metric: float | None = None
        self.evaluations_without_improvement = 0

    def resume(self, record: ClockRecord) -> None:
        """Go on from where a checkpoint was taken."""
        self.version, self.metric, self.reference = record.best_version, record.best_metric, record.reference
        self.evaluations_without_improvement = record.evaluations_without_improvement

    def observe(self, version: int, metric: float | None) -> bool:
        """Take note of one evaluation (metric None: there is no valid mask); True if `version` is the best now."""
        if metric is None:
            self.version = version
            return True
        self._count_improvement(metric)
        if self.metric is not None and self._sign * metric <= self._sign * self.metric:
            return False
        self.version, self.metric = version, metric
        return True

    def reached(self, target: float) -> bool:
        """Whether the best metric is at least as good as the target."""
        return self.metric is not None and self._sign * self.metric >= self._sign * target

    def _count_improvement(self, metric: float) -> None:
        if self.reference is None or self._sign * (metric - self.reference) > self._min_delta:
            self.reference, self.evaluations_without_improvement = metric, 0
        else:
            self.evaluations_without_improvement += 1

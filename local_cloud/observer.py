"""Who watches a training: told what is being done, each epoch's end, and what should be read once."""

from typing import Protocol

import msgspec

from local_cloud.run_result import Status


class EpochReport(msgspec.Struct, frozen=True, kw_only=True):
    """One line of metrics.jsonl. loss = training loss of this epoch; accuracies of the weights it made, and the metric
    that the job is judged by, None if it was not evaluated, the mask is empty or the task has none; seconds since
    the last epoch's end, evaluation included."""

    epoch: int
    loss: float
    train_accuracy: float | None
    valid_accuracy: float | None
    test_accuracy: float | None
    train_metric: float | None = None
    valid_metric: float | None = None
    test_metric: float | None = None
    exact: bool
    seconds: float


class Observer(Protocol):
    def doing(self, what: str) -> None:
        """A phase began: reading the dataset, cutting the graph, ..."""
        ...

    def training_starts(self, job_id: str, run_dir: str, num_epochs: int) -> None: ...

    def epoch_ended(self, report: EpochReport) -> None: ...

    def status(self, status: Status) -> None:
        """About once a second."""
        ...

    def note(self, text: str) -> None:
        """Worth reading once: an alias, a warning of the dataset, what Ctrl-C does."""
        ...


class Silent:
    """Watches nothing."""

    def doing(self, what: str) -> None:
        pass

    def training_starts(self, job_id: str, run_dir: str, num_epochs: int) -> None:
        pass

    def epoch_ended(self, report: EpochReport) -> None:
        pass

    def status(self, status: Status) -> None:
        pass

    def note(self, text: str) -> None:
        pass

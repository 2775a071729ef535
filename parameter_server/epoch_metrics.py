"""What an epoch was worth: from sums over all intervals to one loss and three accuracies."""

from collections.abc import Mapping

import msgspec

from common.errors import ScheduleError


class EpochMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of weights version `epoch`.

    loss      of `train epoch`: weights epoch - 1, dropout on; sum of w_c·l over sum of w_c, over all train entries
    accuracy  of `evaluate epoch`: share of a mask's entries; None if the mask is empty or there was no evaluation
    exact     False: measured while other epochs were in flight
    """

    epoch: int
    loss: float
    train_accuracy: float | None = None
    valid_accuracy: float | None = None
    test_accuracy: float | None = None
    exact: bool = True


def training_loss(totals: Mapping[str, float]) -> float | None:
    """totals: loss, loss_weight. None if no train entry has any weight."""
    loss, weight = (_required(totals, name) for name in ("loss", "loss_weight"))
    return loss / weight if weight else None


def accuracy(totals: Mapping[str, float], mask: str) -> float | None:
    """totals: <mask>_correct, <mask>_count. None if the mask is empty."""
    count = totals.get(f"{mask}_count", 0.0)
    return _required(totals, f"{mask}_correct") / count if count else None


def _required(totals: Mapping[str, float], name: str) -> float:
    if name not in totals:
        raise ScheduleError(
            what=f"a pass ended without the sum '{name}'",
            why=f"its intervals reported {', '.join(totals) or 'nothing'}",
        )
    return totals[name]

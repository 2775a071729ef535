"""From sums over all intervals to a loss and accuracies."""

from collections.abc import Mapping

from common.errors import ScheduleError


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

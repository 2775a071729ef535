"""Accuracy by epoch: smoothed, read off, drawn."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

MEAN_OF = 5
"""Epochs: dropout makes single ones jump."""
COLOURS = ("#0072b2", "#009e73", "#e69f00", "#d55e00")
"""Told apart by everybody. Source: Okabe & Ito 2008."""
COLUMNS = 3


@dataclass(frozen=True)
class Curve:
    """accuracies: of epochs 1, 2, ...; counts: of the run, as its roles told them."""

    accuracies: tuple[float, ...]
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def smoothed(self) -> npt.NDArray[np.float64]:
        """[epochs - 4], the mean of each epoch and the four before it; the first is epoch 5's."""
        if len(self.accuracies) < MEAN_OF:
            return np.empty(0)
        return np.convolve(self.accuracies, np.full(MEAN_OF, 1 / MEAN_OF), "valid")

    @property
    def best(self) -> float:
        return float(self.smoothed.max(initial=0.0))

    def epochs_until(self, target: float) -> int | None:
        """The first epoch whose mean is there."""
        there = np.flatnonzero(self.smoothed >= target)
        return int(there[0]) + MEAN_OF if len(there) else None


def plot(panels: Mapping[str, Mapping[str, Curve]], share_of_best: float, path: Path) -> None:
    """One panel per case with a curve per mode; a line where the first mode has that share of its best."""
    from matplotlib.figure import Figure  # here, not above: most runs draw nothing

    num_columns = min(COLUMNS, len(panels))
    num_rows = -(-len(panels) // num_columns)
    figure = Figure(figsize=(4 * num_columns, 2.8 * num_rows), layout="constrained")
    axes = figure.subplots(num_rows, num_columns, squeeze=False).ravel()
    for axis, (title, curves) in zip(axes, panels.items(), strict=False):
        for colour, (mode, curve) in zip(COLOURS, curves.items(), strict=True):
            smoothed = curve.smoothed
            axis.plot(np.arange(len(smoothed)) + MEAN_OF, smoothed, color=colour, label=mode, linewidth=1.2)
        axis.axhline(share_of_best * next(iter(curves.values())).best, color="grey", linewidth=0.8, linestyle=":")
        axis.set(title=title, xlabel="epoch", ylabel="valid accuracy")
    for axis in axes[len(panels) :]:
        axis.remove()
    axes[0].legend(frameon=False)
    figure.savefig(path)

"""Times as bars, one panel for each row of a comparison."""

from collections.abc import Mapping
from pathlib import Path

OURS, THEIRS = "#0072b2", "#b0b0b0"
COLUMNS = 4


def plot(panels: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """panels: seconds per epoch by contestant, by row. Ours stand out; at a bar stands its ratio to the first."""
    from matplotlib.figure import Figure  # here, not above: most runs draw nothing

    num_columns = min(COLUMNS, len(panels))
    num_rows = -(-len(panels) // num_columns)
    figure = Figure(figsize=(3.6 * num_columns, 2.0 * num_rows), layout="constrained")
    axes = figure.subplots(num_rows, num_columns, squeeze=False).ravel()
    for axis, (title, seconds) in zip(axes, panels.items(), strict=False):
        names, first = list(seconds), next(iter(seconds.values()))
        colours = [OURS if name.startswith("dorylus") else THEIRS for name in names]
        bars = axis.barh(names, [1000 * each for each in seconds.values()], color=colours)
        axis.bar_label(bars, labels=[f"{each / first:.2f}x" for each in seconds.values()], padding=3)
        axis.set(title=title, xlabel="ms per epoch")
        axis.invert_yaxis()
        axis.margins(x=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(panels) :]:
        axis.remove()
    figure.savefig(path)

"""The tables of the comparison."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from benchmarks.outcome import Rounds, deviation, ratio
from benchmarks.workloads import Row

WIDTH = 120
COLUMNS = ("ms per epoch", "times ours", "first, ms", "peak GB", "losses apart", "others")


def show(row: Row, by_name: Mapping[str, Rounds]) -> None:
    """One table: a line per contestant. `others`: the share of the cores that somebody else had, at most."""
    table = Table(title=f"{row.name}: {row.recipe.num_vertices:,} vertices, {row.num_epochs} epochs")
    table.add_column("contestant")
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    ours = by_name.get("dorylus", Rounds(()))
    for name, rounds in by_name.items():
        table.add_row(name, *_cells(rounds, ours))
    console = Console(width=WIDTH)
    console.print(table)
    for name, rounds in by_name.items():
        if rounds.why:
            console.print(f"{row.name}: {name}: {rounds.why}", highlight=False, markup=False)
    overhead = next((o.overhead for o in ours.done if o.overhead is not None), None)
    if row.has_overhead and overhead is not None:
        console.print(
            f"{row.name}: no step at work for {1000 * overhead.seconds:.2f} ms of an epoch of {overhead.hops} hops: "
            f"{1e6 * overhead.per_hop:.0f} us each",
            highlight=False,
        )


def _cells(rounds: Rounds, ours: Rounds) -> tuple[str, ...]:
    if rounds.steady is None or rounds.first is None or rounds.peak_bytes is None:
        return ("-", *("" for _ in COLUMNS[1:]))
    times, apart = ratio(rounds.steady, ours.steady), deviation(ours.losses, rounds.losses)
    return (
        f"{1000 * rounds.steady:.1f}",
        "" if times is None else f"{times:.2f}",
        f"{1000 * rounds.first:.0f}",
        f"{rounds.peak_bytes / 1e9:.2f}",
        "" if apart is None else f"{apart:.1%}",
        f"{max(o.others for o in rounds.done):.0%}",
    )


def show_agreement(agree: Mapping[str, Mapping[str, float | None]], bound: float) -> None:
    """How far each peer's loss curve is from ours without dropout."""
    table = Table()
    for column in ("model", "peer", "apart"):
        table.add_column(column, justify="right" if column == "apart" else "left")
    for model, by_name in agree.items():
        for name, apart in by_name.items():
            table.add_row(model, name, "no curve" if apart is None else f"{apart:.1e}")
    console = Console(width=WIDTH)
    console.print(f"loss curves on a small graph without dropout, largest relative difference (at most {bound:g}):")
    console.print(table)

"""Seconds per epoch and memory: dorylus beside PyG, DGL and plain torch, on the same graphs, side by side in one run.

    python benchmarks/epoch_time.py [--quick] [--json FILE] [--plot FILE] [--rows ROW ...] [--contestants NAME ...]
                                    [--rounds N]
    python benchmarks/epoch_time.py --nodes V --edges E --features F --classes C [--model M] [--hidden H]

Ours is the whole product: `dorylus train`, every role a process, evaluation off. Every run is a process of its own, and
the contestants of a row take turns, `--rounds` times. All train the same model from the same first weights: on a small
graph without dropout their loss curves must be the same. `make peers` sets the peers up; who is not there, or would not
fit in memory, does not run, and a goal that needs it does not hold.

An epoch's time is the median after two for warming up. Memory: ours is the largest sum of all processes' proportional
set sizes, looked at each second, a peer's its largest resident set size.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from benchmarks import bars
from benchmarks.epoch_tables import show, show_agreement
from benchmarks.goals import Goal, arguments, write
from benchmarks.graphs import Recipe
from benchmarks.outcome import Outcome, Rounds, deviation, ratio
from benchmarks.own_run import kernels, own_run, resolved
from benchmarks.peer_run import ENVIRONMENTS, PEERS, peer_run
from benchmarks.sizes import SIZES
from benchmarks.workloads import BEST_PYG, OURS, PYG, QUICK_NAMES, ROWS, Row, Wanted, custom, quick
from common.errors import DorylusError

SAME_CURVE = 1e-3
"""The largest relative difference of losses that rounding explains."""
NO_DROPOUT = {"model.dropout": "0", "model.attention_dropout": "0"}


@dataclass(frozen=True)
class Limits:
    """rounds: how often each contestant runs. peer_seconds: of epochs in one run of a peer. own_seconds: of one of
    ours, from the command to its end. environments: of the peers."""

    rounds: int = 2
    peer_seconds: float = 120.0
    own_seconds: float = 1800.0
    environments: Path = ENVIRONMENTS


@dataclass(frozen=True)
class Result:
    row: Row
    by_name: Mapping[str, Rounds]

    def rounds(self, name: str) -> Rounds:
        """Nothing of somebody who did not take part."""
        if name != BEST_PYG:
            return self.by_name.get(name, Rounds(()))
        forms = [rounds for form in PYG if (rounds := self.rounds(form)).steady is not None]
        return min(forms, key=lambda rounds: rounds.steady or 0.0, default=Rounds(()))

    def goals(self) -> dict[str, Goal]:
        found = {_name(self.row, wanted): self._goal(wanted) for wanted in self.row.wanted}
        if self.row.peak_gb is not None:
            ours, dgl = self.rounds("dorylus").peak_bytes, self.rounds("dgl").peak_bytes
            gigabytes = None if ours is None else ours / 1e9
            found[f"{self.row.name}: GB of dorylus"] = Goal(gigabytes, self.row.peak_gb, at_most=True)
            found[f"{self.row.name}: memory, dgl over dorylus"] = Goal(ratio(dgl, ours), 1.0)
        return found

    def _goal(self, wanted: Wanted) -> Goal:
        value = ratio(self.rounds(wanted.slow).steady, self.rounds(wanted.quick).steady)
        return Goal(value, wanted.times, at_most=wanted.at_most)


def _name(row: Row, wanted: Wanted) -> str:
    return f"{row.name}: {wanted.slow} over {wanted.quick}"


def run(name: str, row: Row, limits: Limits) -> Outcome:
    if name in PEERS:
        spec = resolved(row.recipe, row.settings)
        return peer_run(
            PEERS[name],
            row.recipe,
            spec,
            num_epochs=row.num_epochs,
            seconds=limits.peer_seconds,
            environments=limits.environments,
        )
    try:
        return own_run(row.recipe, row.settings, OURS[name], num_epochs=row.num_epochs, limit=limits.own_seconds)
    except DorylusError as error:
        return Outcome(why=str(error).splitlines()[0])


def measure(row: Row, limits: Limits) -> Result:
    """The contestants take turns; who could not run is not asked again."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in row.contestants}
    for _ in range(limits.rounds):
        for name, before in outcomes.items():
            if before and before[-1].why:
                continue
            before.append(run(name, row, limits))
            last = before[-1]
            said = last.why or f"{1000 * last.steady:.1f} ms per epoch"
            Console(stderr=True, highlight=False).print(f"{row.name}: {name}: {said}", markup=False)
    return Result(row, {name: Rounds(tuple(found)) for name, found in outcomes.items()})


def agreement(row: Row, limits: Limits) -> dict[str, float | None]:
    """By peer, how far its loss curve is from ours, on a small graph without dropout."""
    small = replace(row, recipe=SIZES["small"], settings={**row.settings, **NO_DROPOUT}, num_epochs=5)
    ours = run("dorylus", small, limits)
    peers = [name for name in row.contestants if name in PEERS]
    return {name: deviation(ours.losses, run(name, small, limits).losses) for name in peers}


def parser() -> argparse.ArgumentParser:
    made = arguments("Seconds per epoch, beside PyG, DGL and plain torch.")
    made.add_argument("--rows", nargs="+", choices=ROWS, metavar="ROW", help=f"of {', '.join(ROWS)}")
    names = [*OURS, *PEERS]
    made.add_argument("--contestants", nargs="+", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    made.add_argument("--rounds", type=int, metavar="N", help="runs of each contestant [2; with --quick 1]")
    made.add_argument("--plot", type=Path, metavar="FILE", help="draw the times there (.svg, .png)")
    made.add_argument("--peers", type=Path, default=ENVIRONMENTS, metavar="FOLDER", help="what `make peers` has made")
    own = made.add_argument_group("a graph of your own size, instead of the rows")
    for name, default in (("nodes", None), ("edges", None), ("features", 128), ("classes", 40), ("hidden", 128)):
        own.add_argument(f"--{name}", type=int, default=default, metavar="N")
    own.add_argument("--model", choices=("gcn", "graphsage", "gat"), default="gcn")
    return made


def chosen(given: argparse.Namespace) -> list[Row]:
    if given.nodes is not None:
        # An edge is drawn once and goes both ways.
        drawn = (given.edges or 10 * given.nodes) // 2
        recipe = Recipe("blocks", given.nodes, drawn, given.features, given.classes, train=0.5)
        rows = [custom(recipe, {"model.name": given.model, "model.hidden_size": str(given.hidden)})]
    else:
        rows = [ROWS[name] for name in given.rows or (QUICK_NAMES if given.quick else ROWS)]
    if given.quick:
        rows = [quick(row) for row in rows]
    if given.contestants:
        rows = [replace(row, contestants=tuple(n for n in row.contestants if n in given.contestants)) for row in rows]
    return rows


def main() -> None:
    given = parser().parse_args()
    rounds = given.rounds or (1 if given.quick else 2)
    limits = Limits(rounds, peer_seconds=12.0 if given.quick else 120.0, environments=given.peers)
    Console().print(f"kernels of ours: {kernels()}", highlight=False)
    results: list[Result] = []
    agree: dict[str, dict[str, float | None]] = {}
    for row in chosen(given):
        if (model := row.settings["model.name"]) not in agree:
            agree[model] = agreement(row, limits)
        results.append(measure(row, limits))
        show(results[-1].row, results[-1].by_name)
        write(given.json, goals_of(results, agree), rows_of(results))
        if given.plot is not None:
            draw(results, given.plot)
    show_agreement(agree, SAME_CURVE)


def draw(results: Sequence[Result], path: Path) -> None:
    """Rows in which we ran."""
    each = {
        result.row.name: {name: rounds.steady for name, rounds in result.by_name.items() if rounds.steady is not None}
        for result in results
        if result.rounds("dorylus").steady is not None
    }
    if each:
        bars.plot(each, path)


def goals_of(results: Sequence[Result], agree: Mapping[str, Mapping[str, float | None]]) -> dict[str, Goal]:
    found: dict[str, Goal] = {}
    for result in results:
        found |= result.goals()
    for model, by_name in agree.items():
        for name, apart in by_name.items():
            found[f"same loss curve, {model}: {name}"] = Goal(apart, SAME_CURVE, at_most=True)
    return found


def rows_of(results: Sequence[Result]) -> list[dict[str, object]]:
    """What the tables show, and every epoch."""
    return [_row(result, name, rounds) for result in results for name, rounds in result.by_name.items()]


def _row(result: Result, name: str, rounds: Rounds) -> dict[str, object]:
    ours = result.rounds("dorylus")
    overhead = next((o.overhead for o in rounds.done if o.overhead is not None), None)
    return {
        "row": result.row.name,
        "contestant": name,
        "epoch_seconds": rounds.steady,
        "over_dorylus": ratio(rounds.steady, ours.steady),
        "first_epoch_seconds": rounds.first,
        "peak_bytes": rounds.peak_bytes,
        "losses_apart": deviation(ours.losses, rounds.losses),
        "overhead_seconds": None if overhead is None else overhead.seconds,
        "hops": None if overhead is None else overhead.hops,
        "why": rounds.why,
        "kernels": next((o.kernels for o in rounds.done), ""),
        "others": [o.others for o in rounds.done],
        "runs": [{"seconds": o.seconds, "losses": o.losses} for o in rounds.done],
    }


if __name__ == "__main__":
    main()

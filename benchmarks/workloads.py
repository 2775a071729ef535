"""The rows of the comparison: a graph, a model, who runs it, and what ratios it must show."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from benchmarks.graphs import Recipe
from benchmarks.modes import Settings
from benchmarks.sizes import SIZES

OURS: Mapping[str, Settings] = {
    "dorylus": {},
    "dorylus mixed": {"training.precision": "mixed"},
    "dorylus lambda": {"backend.name": "lambda"},
}
"""What each adds to a row's settings."""
PYG = ("pyg", "pyg csr", "pyg sparse")
BEST_PYG = "best pyg"
"""The quickest of PyG's forms that ran."""
GAT_DROPOUT = {"model.dropout": "0.6", "model.attention_dropout": "0.6"}


@dataclass(frozen=True)
class Wanted:
    """`slow` takes at least so many times as long per epoch as `quick`; or at most: then `quick` is the measure."""

    slow: str
    quick: str
    times: float
    at_most: bool = False


@dataclass(frozen=True)
class Row:
    """num_epochs: measured, of ours; peers stop earlier if they take long. peak_gb: what `dorylus` may take, and less
    than dgl. has_overhead: small enough that what no step is at work for matters."""

    name: str
    recipe: Recipe
    settings: Settings
    contestants: tuple[str, ...]
    wanted: tuple[Wanted, ...] = ()
    num_epochs: int = 6
    peak_gb: float | None = None
    has_overhead: bool = False


def _reddit(name: str, settings: Settings, contestants: tuple[str, ...], *wanted: Wanted) -> Row:
    return Row(f"reddit-{name}", SIZES["reddit"], settings, contestants, wanted)


def _gcn(hidden: int) -> Settings:
    return {"model.name": "gcn", "model.hidden_size": str(hidden)}


_SAGE = {"model.name": "graphsage", "model.hidden_size": "128"}
_MIXED = ("dorylus", "dorylus mixed")

LARGE = (
    replace(
        _reddit(
            "gcn128",
            _gcn(128),
            (*OURS, "dgl", *PYG, "torch"),
            Wanted(BEST_PYG, "dorylus", 15),
            Wanted("dgl", "dorylus", 2.5),
            Wanted(BEST_PYG, "dorylus mixed", 35),
            Wanted("dgl", "dorylus mixed", 4.5),
            Wanted("dorylus lambda", "dorylus", 1.35, at_most=True),
        ),
        peak_gb=3.5,
    ),
    _reddit("gcn16", _gcn(16), ("dorylus", "dgl"), Wanted("dgl", "dorylus", 1.4)),
    _reddit("gcn256", _gcn(256), (*_MIXED, "dgl"), Wanted("dgl", "dorylus mixed", 6)),
    _reddit(
        "sage128",
        _SAGE,
        (*_MIXED, "dgl"),
        Wanted("dgl", "dorylus", 3),
        Wanted("dgl", "dorylus mixed", 4),
    ),
    Row(
        "products-gcn128",
        SIZES["products"],
        _gcn(128),
        (*_MIXED, "dgl"),
        (Wanted("dgl", "dorylus mixed", 3.5),),
        num_epochs=5,
    ),
)
ARXIV = (
    Row(
        "arxiv-gcn128",
        SIZES["arxiv"],
        _gcn(128),
        ("dorylus", "dgl", *PYG, "torch"),
        (Wanted("dgl", "dorylus", 2), Wanted("pyg sparse", "dorylus", 3.5), Wanted("pyg", "dorylus", 9)),
        num_epochs=12,
    ),
    Row(
        "arxiv-gat8x8",
        SIZES["arxiv"],
        {"model.name": "gat", **GAT_DROPOUT},
        ("dorylus", "dgl", "pyg", "pyg sparse"),
        (Wanted("dgl", "dorylus", 6), Wanted(BEST_PYG, "dorylus", 15)),
        num_epochs=12,
    ),
)
SMALL = tuple(
    Row(
        f"{size}-{name}",
        SIZES[size],
        {"model.name": model},
        ("dorylus", "dgl", "pyg"),
        (Wanted("dgl", "dorylus", 1),),
        num_epochs=100,
        has_overhead=True,
    )
    for size in ("small", "pubmed", "cora")
    for name, model in (("gcn", "gcn"), ("sage", "graphsage"), ("gat", "gat"))
)
ROWS: Mapping[str, Row] = {row.name: row for row in (*LARGE, *ARXIV, *SMALL)}
QUICK_NAMES = tuple(row.name for row in (*ARXIV, *SMALL))


def custom(recipe: Recipe, settings: Settings) -> Row:
    """Of a graph of any size; it has no goals."""
    return Row("custom", recipe, settings, (*OURS, "dgl", *PYG, "torch"))


def quick(row: Row) -> Row:
    """The same with fewer epochs."""
    return replace(row, num_epochs=min(row.num_epochs, 6 if not row.has_overhead else 40))

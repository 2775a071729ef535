"""Seeded graphs for the other benchmarks, in NumPy alone: the same recipe gives the same files.

    blocks   labels that show: a vertex's neighbours are mostly of its class, degrees differ widely
    local    runs of consecutive vertices on a ring: most edges stay in a run, the others lead to the next one
    random   edges lead anywhere: whatever the cut, every interval reads every other

All three are degree-corrected block models and differ in what a block is. Features are class centroids under so much
noise that a vertex alone says little of its class, and its neighbours together much.

Source: Karrer & Newman 2011 (arXiv:1008.3926).
"""

import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]

FORMAT = 1
"""Grows when the same recipe gives other files."""
PIECE = 1 << 22
"""Edges that are drawn at once: what a draw needs beside its result does not grow with the graph."""
RUNS = 128
"""Blocks of a local graph: with fewer intervals than that, an interval reads itself and its two neighbours."""
TAIL = 2.5
"""Exponent of the Pareto law of expected degrees; the mean is finite, hubs are real."""
LARGEST_WEIGHT = 50.0
"""Of a vertex, where the smallest is 1: a hub gets no edge twice too often."""


@dataclass(frozen=True)
class Recipe:
    """num_edges: undirected ones that are drawn; loops and repeats fall away, and what stays goes both ways."""

    kind: Literal["blocks", "local", "random"]
    num_vertices: int
    num_edges: int
    num_features: int = 64
    num_classes: int = 10
    signal: float = 0.15
    """Deviation of the centroids' coordinates, where that of the noise is 1."""
    inside: float = 0.45
    """Share of the edges that stay in their block; `random` has no blocks."""
    train: float = 0.1
    valid: float = 0.2
    """Shares of the vertices; all others are test."""
    seed: int = 0

    @property
    def name(self) -> str:
        digest = hashlib.sha256(f"{FORMAT} {self}".encode()).hexdigest()
        return f"{self.kind}-{self.num_vertices}-{self.num_edges}-{digest[:8]}"


@dataclass(frozen=True, eq=False)
class Graph:
    """edges [2, E] int64, each in both directions; features [V, F] float32; labels [V] int64; masks [V, 3] bool, the
    columns train, valid, test."""

    edges: Ints
    features: npt.NDArray[np.float32]
    labels: Ints
    masks: npt.NDArray[np.bool_]


def draw(recipe: Recipe) -> Graph:
    random = np.random.default_rng(recipe.seed)
    labels = random.integers(recipe.num_classes, size=recipe.num_vertices)
    edges = _edges(recipe, labels, random)
    return Graph(edges, _features(recipe, labels, random), labels, _masks(recipe, random))


def write(recipe: Recipe, cache: Path) -> Path:
    """A folder that the edge-list reader takes; it is made once. Returns what `dataset.path` would be."""
    folder = cache / recipe.name
    if folder.exists():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=cache))
    _write(recipe, unfinished)
    try:
        unfinished.rename(folder)
    except OSError:  # somebody else was quicker
        shutil.rmtree(unfinished)
    return folder


def _write(recipe: Recipe, folder: Path) -> None:
    """The arrays of `draw`, one after the other: of a large graph no two are in memory at once."""
    random = np.random.default_rng(recipe.seed)
    labels = random.integers(recipe.num_classes, size=recipe.num_vertices)
    np.save(folder / "labels.npy", labels)
    each = _undirected(recipe, labels, random)
    edges = np.lib.format.open_memmap(folder / "edges.npy", "w+", np.int64, (2, 2 * len(each)))
    for first in range(0, len(each), PIECE):
        here, last = each[first : first + PIECE], min(first + PIECE, len(each))
        low, high = np.divmod(here, recipe.num_vertices)
        edges[0, first:last], edges[1, first:last] = low, high
        edges[0, len(each) + first : len(each) + last], edges[1, len(each) + first : len(each) + last] = high, low
    edges.flush()
    del each, edges
    np.save(folder / "features.npy", _features(recipe, labels, random))
    np.save(folder / "masks.npy", _masks(recipe, random))


def _features(recipe: Recipe, labels: Ints, random: np.random.Generator) -> npt.NDArray[np.float32]:
    centroids = recipe.signal * random.standard_normal((recipe.num_classes, recipe.num_features), np.float32)
    features = random.standard_normal((recipe.num_vertices, recipe.num_features), np.float32)
    features += centroids.astype(np.float32)[labels]
    return features


def _masks(recipe: Recipe, random: np.random.Generator) -> npt.NDArray[np.bool_]:
    rank = random.permutation(recipe.num_vertices)
    train, valid = (round(share * recipe.num_vertices) for share in (recipe.train, recipe.valid))
    return np.stack([rank < train, (rank >= train) & (rank < train + valid), rank >= train + valid], axis=1)


def _edges(recipe: Recipe, labels: Ints, random: np.random.Generator) -> Ints:
    """[2, E] int64: every edge and its reverse, no loop, no repeat, sorted."""
    each = _undirected(recipe, labels, random)
    pairs = np.stack([each // recipe.num_vertices, each % recipe.num_vertices])
    return np.concatenate([pairs, pairs[::-1]], axis=1)


def _undirected(recipe: Recipe, labels: Ints, random: np.random.Generator) -> Ints:
    """[E] int64, low · V + high of every edge once, sorted: 8 bytes an edge, and nothing else of that length stays."""
    blocks, pieces = _blocks(recipe, labels, random), []
    for first in range(0, recipe.num_edges, PIECE):
        sources, targets = _pairs(recipe, blocks, random, min(PIECE, recipe.num_edges - first))
        low, high = np.minimum(sources, targets), np.maximum(sources, targets)
        pieces.append((low * recipe.num_vertices + high)[low != high])
    each = np.concatenate(pieces)
    each.sort()
    is_first = np.ones(len(each), np.bool_)
    is_first[1:] = each[1:] != each[:-1]
    return each[is_first]


def _blocks(recipe: Recipe, labels: Ints, random: np.random.Generator) -> "_Blocks":
    weights = np.ones(recipe.num_vertices)
    match recipe.kind:
        case "blocks":
            weights = np.minimum(1 + random.pareto(TAIL, recipe.num_vertices), LARGEST_WEIGHT)
            return _Blocks(labels, recipe.num_classes, weights)
        case "local":
            return _Blocks(np.arange(recipe.num_vertices) * RUNS // recipe.num_vertices, RUNS, weights)
        case "random":
            return _Blocks(np.zeros(recipe.num_vertices, np.int64), 1, weights)


def _pairs(recipe: Recipe, blocks: "_Blocks", random: np.random.Generator, count: int) -> tuple[Ints, Ints]:
    sources = blocks.anywhere(random, count)
    if recipe.kind == "random":
        return sources, blocks.anywhere(random, count)
    home = blocks.of[sources]
    beyond = blocks.within((home + 1) % RUNS, random) if recipe.kind == "local" else blocks.anywhere(random, len(home))
    return sources, np.where(random.random(len(home)) < recipe.inside, blocks.within(home, random), beyond)


class _Blocks:
    """Draws vertices by weight, from all or from given blocks."""

    def __init__(self, of: Ints, num_blocks: int, weights: Floats) -> None:
        self.of = of
        self._order = np.argsort(of, kind="stable")
        self._sums = np.concatenate([[0.0], np.cumsum(weights[self._order])])
        self._bounds = self._sums[np.concatenate([[0], np.cumsum(np.bincount(of, minlength=num_blocks))])]

    def anywhere(self, random: np.random.Generator, count: int) -> Ints:
        return self._at(random.random(count) * self._sums[-1])

    def within(self, blocks: Ints, random: np.random.Generator) -> Ints:
        """One vertex of each given block."""
        low, high = self._bounds[blocks], self._bounds[blocks + 1]
        return self._at(low + random.random(len(blocks)) * (high - low))

    def _at(self, places: Floats) -> Ints:
        found = np.searchsorted(self._sums, places, side="right") - 1
        return self._order[np.minimum(found, len(self._order) - 1)]

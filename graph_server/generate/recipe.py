"""What a made-up graph is to be, and what follows for each vertex by its number alone.

    blocks   a degree-corrected stochastic block model: block v mod num_blocks, label block mod num_classes; most edges
             stay in their block, and within one the first vertices have most of them
    ring     the same, and edges that leave their block lead to the next one: of any cut into few intervals, an interval
             reads itself and its two neighbours
    rmat     R-MAT: the halves of the numbers, and halves of these, keep most edges to themselves; label v · C div V

Nothing is held for a vertex, and a piece of vertices or edges is drawn from (seed, which piece) alone: the same recipe
gives the same graph, in whatever memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from common.errors import SpecError
from graph_server.graph.cut import splitmix64
from graph_server.ingest.masks import TEST, TRAIN, VALID

Ints = npt.NDArray[np.int64]
PIECE = 1 << 20
"""Vertices or edges that are drawn together; another number would give another graph."""
_EDGES, _NOISE, _CENTROIDS = range(3)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """num_edges: drawn, each in one direction; repeats among them count once when the graph is read. signal: how far
    the features of the labels lie apart, in deviations of the noise. inside: of blocks and rings, the share of edges
    that stay in their block. train, valid: shares of the vertices, by chance; all others are test."""

    kind: Literal["blocks", "ring", "rmat"]
    num_vertices: int
    num_edges: int
    num_classes: int = 16
    num_features: int = 64
    num_blocks: int | None = None
    inside: float = 0.8
    train: float = 0.6
    valid: float = 0.2
    signal: float = 0.5
    seed: int = 0

    @property
    def blocks(self) -> int:
        """About 2000 vertices in each, unless it was said."""
        wanted = self.num_blocks or max(self.num_classes, self.num_vertices // 2000)
        return min(wanted, self.num_vertices)

    def check(self) -> None:
        """Raises SpecError for what nothing can be drawn from."""
        least = {"num_vertices": 1, "num_edges": 0, "num_classes": 1, "num_features": 1, "seed": 0}
        for name, lowest in least.items():
            if getattr(self, name) < lowest:
                raise SpecError(f"{name} = {getattr(self, name)}", why=f"it is at least {lowest}", fix="raise it")
        if self.num_vertices >= 2**40:
            raise SpecError(f"num_vertices = {self.num_vertices}", why="numbers have up to 40 bits", fix="lower it")
        for name in ("inside", "train", "valid"):
            if not 0 <= getattr(self, name) <= 1:
                raise SpecError(
                    f"{name} = {getattr(self, name):g}", why="it is a share", fix="give a number from 0 to 1"
                )
        if self.train + self.valid > 1:
            raise SpecError(
                f"train = {self.train:g} and valid = {self.valid:g}",
                why="a vertex is in one of them, or in neither",
                fix="lower one: together they are at most 1",
            )
        if self.num_classes > self.num_vertices:
            raise SpecError(
                f"num_classes = {self.num_classes} for {self.num_vertices} vertices",
                why="every class has a vertex",
                fix="lower it",
            )

    def random(self, what: int, piece: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(np.random.SeedSequence((self.seed, what, piece))))


def pieces(count: int) -> Iterator[tuple[int, int, int]]:
    """(number, first, last)"""
    for number, first in enumerate(range(0, count, PIECE)):
        yield number, first, min(first + PIECE, count)


def labels_of(recipe: Recipe, vertices: Ints) -> Ints:
    if recipe.kind != "rmat":
        return vertices % recipe.blocks % recipe.num_classes
    return vertices * recipe.num_classes // recipe.num_vertices


def masks_of(recipe: Recipe, vertices: Ints) -> npt.NDArray[np.uint8]:
    """The first vertex trains in any case."""
    start = splitmix64(np.array([recipe.seed], np.uint64))
    chance = splitmix64(start ^ vertices.astype(np.uint64)) / 2.0**64
    masks = np.select([chance < recipe.train, chance < recipe.train + recipe.valid], [TRAIN, VALID], TEST)
    return np.where(vertices == 0, TRAIN, masks).astype(np.uint8)


def features_of(recipe: Recipe, number: int, first: int, last: int) -> npt.NDArray[np.float32]:
    """[last - first, F]: noise of deviation 1 around the centroid of the label."""
    shape = (recipe.num_classes, recipe.num_features)
    centroids: npt.NDArray[Any] = recipe.random(_CENTROIDS, 0).standard_normal(shape, np.float32)
    noise = recipe.random(_NOISE, number).standard_normal((last - first, recipe.num_features), np.float32)
    labels = labels_of(recipe, np.arange(first, last))
    return noise + np.float32(recipe.signal) * centroids[labels]


def edges_of(recipe: Recipe, number: int, count: int) -> tuple[Ints, Ints]:
    """(sources, targets) of a piece; a vertex has an edge to itself only where its block has no other."""
    random = recipe.random(_EDGES, number)
    return (_rmat_edges if recipe.kind == "rmat" else _block_edges)(recipe, random, count)


def _block_edges(recipe: Recipe, random: np.random.Generator, count: int) -> tuple[Ints, Ints]:
    blocks = recipe.blocks
    of_source = random.integers(blocks, size=count)
    stays = random.random(count) < recipe.inside
    beyond = (of_source + 1) % blocks if recipe.kind == "ring" else random.integers(blocks, size=count)
    of_target = np.where(stays, of_source, beyond)
    sources, targets = (_in_block(recipe, block, random.random(count)) for block in (of_source, of_target))
    beside = np.where(targets + blocks < recipe.num_vertices, targets + blocks, targets % blocks)
    return sources, np.where(sources == targets, beside, targets)


def _in_block(recipe: Recipe, block: Ints, chance: npt.NDArray[np.float64]) -> Ints:
    """One vertex of each block: the square makes a power law of degrees, with exponent 3."""
    sizes = (recipe.num_vertices - block + recipe.blocks - 1) // recipe.blocks
    return block + recipe.blocks * (sizes * chance**2).astype(np.int64)


_QUADRANTS = np.cumsum([0.57, 0.19, 0.19])
"""Source and target in the same half: 0.57 + 0.05. Source: Chakrabarti et al. 2004; the shares of Graph500."""


def _rmat_edges(recipe: Recipe, random: np.random.Generator, count: int) -> tuple[Ints, Ints]:
    bits = max(1, (recipe.num_vertices - 1).bit_length())
    found = np.zeros((2, 0), np.int64)
    while found.shape[1] < count:  # what lies beyond the last vertex is drawn again
        ends = np.zeros((2, PIECE), np.int64)
        for _ in range(bits):
            quadrant = np.searchsorted(_QUADRANTS, random.random(PIECE), side="right")
            ends = 2 * ends + np.stack([quadrant // 2, quadrant % 2])
        legal = (ends < recipe.num_vertices).all(axis=0) & ((ends[0] != ends[1]) | (recipe.num_vertices == 1))
        found = np.concatenate([found, ends[:, legal]], axis=1)
    return found[0, :count], found[1, :count]

"""What the doctor says, as data. A part that could not be looked at is None.

Rows count from 0 in the order of the file: the row of a vertex, of an edge, or the number of a feature's column.
"""

from collections.abc import Iterable
from enum import StrEnum

import msgspec
import numpy as np

from common.saga.tasks import Task
from graph_server.ingest.raw_graph import Array

MOST_ROWS = 10


class Level(StrEnum):
    REFUSED = "refused"
    """A training would not start."""
    WARNING = "warning"
    """It would start; the result may not be what was meant."""
    NOTE = "note"
    """Worth knowing once."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """what, why and fix are one sentence each, with the numbers."""

    code: str
    level: Level
    what: str
    why: str
    fix: str
    options: tuple[str, ...] = ()
    """Lines of a job spec, such as `dataset.nan: zero`; each alone gets past this finding."""
    rows_of: str = ""
    """vertices, edges or columns."""
    rows: tuple[int, ...] = ()
    """The first ten."""


class DegreeBin(msgspec.Struct, frozen=True):
    """How many vertices have an in-degree of lowest .. highest."""

    lowest: int
    highest: int
    num_vertices: int


class EdgeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """From `self_loops` on: of the edges that are trained on or, while that is refused, of edges in both directions."""

    raw: int
    """In the file."""
    distinct: int
    """Without repeats."""
    both_ways: int
    """With every missing reverse edge; repeats as `dedup` says."""
    trained_on: int | None
    """None: refused."""
    directed: bool | None
    reciprocity: float
    """The share of edges between different vertices whose reverse is there."""
    self_loops: int
    isolated: int
    """Vertices without an edge to another."""
    zero_in_degree: int
    components: int
    """Directions left out; an isolated vertex is one."""
    largest_component: int
    mean_in_degree: float
    largest_in_degree: int
    in_degrees: tuple[DegreeBin, ...]
    weights: tuple[float, float] | None = None
    """The smallest and the largest weight; None where edges have none."""
    negative_weights: str = ""
    """Where negative ones stand."""


class FeatureFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Of the file's features, before any policy; extremes leave NaN and Inf out, and are None where nothing is left."""

    num_columns: int
    dtype: str
    is_sparse: bool
    nonzero_share: float
    num_nan: int
    num_inf: int
    constant_columns: int
    zero_rows: int
    smallest: float | None
    largest: float | None
    smallest_deviation: float | None
    """Of the columns that are not constant."""
    largest_deviation: float | None


class ClassFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One class or label, by the user's value; how many vertices have it, and how many of them in each mask."""

    value: int | str
    num_vertices: int
    train: int | None
    valid: int | None
    test: int | None


class TargetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One number to be met, by its column; over the vertices where it is known."""

    value: int | str
    num_vertices: int
    smallest: float | None
    largest: float | None
    mean: float | None
    deviation: float | None


class LabelFacts(msgspec.Struct, frozen=True, kw_only=True):
    classes: tuple[ClassFacts, ...]
    """Of multi_class and multi_label."""
    unlabelled: int
    """Vertices without any label."""
    targets: tuple[TargetFacts, ...] = ()
    """Of a regression."""


class MaskFacts(msgspec.Struct, frozen=True, kw_only=True):
    """As the file has them or, where it has none, as the split draws them."""

    of_the_file: bool
    train: int
    valid: int
    test: int
    in_several: int
    in_none: int


class MemoryForecast(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes; computed from counts and widths, not measured."""

    dataset: int
    """Held while it is read and cut; what a reader takes besides is not in it."""
    graph_folder: int
    """On disk."""
    training: int
    """All graph servers together, without the rows that several of them hold."""
    model: str
    """Whose tensors `training` counts."""
    available: int
    """What this machine can give now."""


class TimeForecast(msgspec.Struct, frozen=True, kw_only=True):
    """Estimated from counts and assumed rates, not measured."""

    epoch_seconds: tuple[float, float]
    """(low, high), without evaluation; by the rates of `dorylus plan`, which may be wrong by a factor, either way."""
    num_epochs: int
    """Of the job."""
    num_intervals: int
    num_cores: int
    """Of this machine, that there are intervals for."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    format: str | None
    accepted: bool
    """Whether a training would start: no finding is `refused`."""
    num_nodes: int | None = None
    num_edges: int | None = None
    """As trained on, both directions counted; in the file, while that is refused."""
    num_features: int | None = None
    task: Task | None = None
    num_classes: int | None = None
    """Or labels of a vertex; None of a regression."""
    findings: tuple[Finding, ...] = ()
    """Refused first, then warnings, then notes."""
    notes: tuple[str, ...] = ()
    """What the reader and the policies decided."""
    edges: EdgeFacts | None = None
    features: FeatureFacts | None = None
    labels: LabelFacts | None = None
    masks: MaskFacts | None = None
    memory: MemoryForecast | None = None
    time: TimeForecast | None = None


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: list(Level).index(finding.level)))


def first_rows(chosen: Array) -> tuple[int, ...]:
    """bool [n] -> where it is true, at most ten."""
    return tuple(np.flatnonzero(chosen)[:MOST_ROWS].tolist())

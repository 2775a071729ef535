"""Features: what is missing, what says nothing, whose scale drowns the others.

Read in blocks of rows: the whole is never made dense.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse

from graph_server.ingest.doctor.diagnosis import FeatureFacts, Finding, Level, first_rows
from graph_server.ingest.feature_policies import Features
from graph_server.ingest.raw_graph import Array, RawGraph

_BLOCK_VALUES = 1 << 20
WIDE_APART = 1000.0
"""Ratio of the largest deviation of a column to the smallest, from which the doctor speaks up: a judgement."""
_EXACT_IN_FLOAT32 = 2**24


class _Columns:
    """Sums over the finite values of the rows seen so far, [F] each, less the first row's: sums of squares of large
    numbers that differ little would cancel."""

    def __init__(self, width: int) -> None:
        self.lowest, self.highest = np.full(width, np.inf), np.full(width, -np.inf)
        self.total, self.squares, self.known = np.zeros(width), np.zeros(width), np.zeros(width)
        self.shift: Array | None = None
        self.num_nan = self.num_inf = self.num_nonzero = self.num_beyond = 0
        self.zero_rows: list[Array] = []

    def add(self, block: Array) -> None:
        """block   float64 [rows, F]"""
        finite = np.isfinite(block)
        self.num_nan += int(np.isnan(block).sum())
        self.num_inf += int(np.isinf(block).sum())
        self.num_nonzero += int(np.count_nonzero(block))
        self.num_beyond += int((np.abs(block) > _EXACT_IN_FLOAT32).sum())
        self.zero_rows.append(np.asarray(~block.any(axis=1)))
        self.lowest = np.minimum(self.lowest, np.where(finite, block, np.inf).min(axis=0))
        self.highest = np.maximum(self.highest, np.where(finite, block, -np.inf).max(axis=0))
        if self.shift is None:
            self.shift = np.where(finite[0], block[0], 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.where(finite, block - self.shift, 0.0)
            self.total += values.sum(axis=0)
            self.squares += (values * values).sum(axis=0)
        self.known += finite.sum(axis=0)

    @property
    def constant(self) -> Array:
        """bool [F]: all values equal, or none there."""
        return self.lowest >= self.highest

    @property
    def deviations(self) -> Array:
        """Of the columns that are not constant; those beyond float64 are left out."""
        vary = ~self.constant
        count = np.maximum(self.known[vary], 1)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = self.total[vary] / count
            spread = np.sqrt(np.maximum(self.squares[vary] / count - mean * mean, 0.0))
        return np.asarray(spread[np.isfinite(spread) & (spread > 0)])


def feature_facts(raw: RawGraph, made: Features | None) -> tuple[FeatureFacts | None, tuple[Finding, ...]]:
    """The file's features, and what the doctor finds in them. `made`: what the policies made of them, if they could."""
    if raw.features is None or raw.features.shape[1:] == (0,):
        return None, ()
    matrix = raw.features[:, None] if raw.features.ndim == 1 else raw.features
    if matrix.dtype.kind not in "biuf":
        return None, ()
    columns = _Columns(matrix.shape[1])
    num_rows = max(_BLOCK_VALUES // matrix.shape[1], 1)
    for start in range(0, matrix.shape[0], num_rows):
        columns.add(dense_rows(matrix, slice(start, start + num_rows)).astype(np.float64))
    facts = _facts(matrix, columns)
    return facts, tuple(_findings(facts, columns, made, is_integer=matrix.dtype.kind in "iu"))


def dense_rows(matrix: Array | scipy.sparse.csr_matrix, rows: slice) -> Array:
    block = matrix[rows]
    return block if isinstance(block, np.ndarray) else np.asarray(block.toarray())


def _facts(matrix: Array | scipy.sparse.csr_matrix, columns: _Columns) -> FeatureFacts:
    known = columns.known > 0
    deviations = columns.deviations
    return FeatureFacts(
        num_columns=matrix.shape[1],
        dtype=str(matrix.dtype),
        is_sparse=scipy.sparse.issparse(matrix),
        nonzero_share=columns.num_nonzero / (matrix.shape[0] * matrix.shape[1]),
        num_nan=columns.num_nan,
        num_inf=columns.num_inf,
        constant_columns=int(columns.constant.sum()),
        zero_rows=int(sum(rows.sum() for rows in columns.zero_rows)),
        smallest=float(columns.lowest[known].min()) if known.any() else None,
        largest=float(columns.highest[known].max()) if known.any() else None,
        smallest_deviation=float(deviations.min()) if len(deviations) else None,
        largest_deviation=float(deviations.max()) if len(deviations) else None,
    )


def _findings(facts: FeatureFacts, columns: _Columns, made: Features | None, *, is_integer: bool) -> Iterator[Finding]:
    if made is not None and made.num_nan:
        yield Finding(
            code="filled_features",
            level=Level.NOTE,
            what=f"{made.num_nan} feature values are NaN or empty, and are filled",
            why="dataset.nan says so",
            fix="fill them in, if the values are known",
        )
    if facts.constant_columns:
        yield Finding(
            code="constant_columns",
            level=Level.NOTE,
            what=f"{facts.constant_columns} of {facts.num_columns} columns have one value in all rows",
            why="they tell no vertex from another, and cost as much as the others",
            fix="leave them out",
            rows_of="columns",
            rows=first_rows(columns.constant),
        )
    if facts.zero_rows:
        yield Finding(
            code="zero_rows",
            level=Level.NOTE,
            what=f"{facts.zero_rows} vertices have no feature but zeros",
            why="they are judged by their neighbours alone",
            fix="check that their features are there",
            rows_of="vertices",
            rows=first_rows(np.concatenate(columns.zero_rows)),
        )
    if is_integer and columns.num_beyond:
        yield Finding(
            code="rounded_features",
            level=Level.WARNING,
            what=f"{columns.num_beyond} integer features are above 2^24",
            why="features are float32, which holds whole numbers up to 2^24 exactly",
            fix="scale them, or leave out a column that is an id",
        )
    yield from _scale(facts, made)


def _scale(facts: FeatureFacts, made: Features | None) -> Iterator[Finding]:
    small, large = facts.smallest_deviation, facts.largest_deviation
    if small is None or large is None or large < WIDE_APART * small or made is None or made.normalization != "none":
        return
    yield Finding(
        code="scale",
        level=Level.WARNING,
        what=f"columns deviate by {small:.3g} to {large:.3g} from their means",
        why=f"the widest column is {large / small:,.0f} times as wide as the narrowest, and drowns it",
        fix="bring the columns to one scale",
        options=("dataset.normalize_features: standard",),
    )

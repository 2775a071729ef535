"""Weights of edges, checked where it is still known in which line or row each stands.

NaN, infinity and what float32 cannot hold is refused. Negative weights are kept and their place is remembered: whether
there may be any is for the model to say.
"""

import difflib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow

from common.errors import DatasetError
from graph_server.ingest.arrow_columns import decoded, is_number, number_values
from graph_server.ingest.raw_graph import FEW, Array, EdgeWeights, NegativeWeights, RawGraph, damaged, first_few

SMALLEST, LARGEST = np.finfo(np.float32).tiny, np.finfo(np.float32).max
"""Below the smallest, the reciprocal of a sum of weights would no longer be a float32."""


def checked_weights(values: Array, path: Path, *, lines: Array | None = None, unit: str = "edge") -> EdgeWeights:
    """values: numbers [E]; lines: [E] where each stands, counted in `unit`; None: values are counted from 0.

    Raises DatasetError that names the first few that cannot be used.
    """
    numbers, size = values.astype(np.float64), np.abs(values.astype(np.float64))
    lines = np.arange(len(numbers)) if lines is None else lines
    # NaN fails every comparison.
    bad = ~((size == 0) | ((size >= SMALLEST) & (size <= LARGEST)))
    if bad.any():
        raise DatasetError(
            what=f"{path}: {unit} {first_few(lines[bad])}: {int(bad.sum())} of {len(bad)} edges have a weight that is "
            f"missing or no finite float32: {first_few(numbers[bad], 3)}",
            why="weights multiply rows that are added up: one such weight spoils every vertex that hears of it",
            fix="correct these weights, remove the edges, or leave dataset.edge_weight away",
        )
    negative = np.flatnonzero(numbers < 0)
    return EdgeWeights(numbers.astype(np.float32), _negative(numbers, negative, f"{path.name}: {unit}", lines))


def _negative(numbers: Array, places: Array, where: str, lines: Array) -> NegativeWeights | str:
    if not len(places):
        return ""
    return NegativeWeights(where, lines[places[:FEW]], len(places), float(numbers[places[0]]))


def seen(raw: RawGraph, found: EdgeWeights | None) -> RawGraph:
    """Of a graph whose edges come piece by piece: it keeps no weights, but knows where negative ones stood."""
    if found is None:
        return raw
    before = "" if raw.weights is None else raw.weights.negative
    negative = before.and_more(found.negative) if isinstance(before, NegativeWeights) else found.negative
    return replace(raw, weights=EdgeWeights(found.values[:0], negative))


def joined(parts: Sequence[EdgeWeights | None]) -> EdgeWeights | None:
    """Those of several files, one after the other."""
    given = [part for part in parts if part is not None]
    if not given:
        return None
    negative = next((part.negative for part in given if part.negative), "")
    return EdgeWeights(np.concatenate([part.values for part in given]), negative)


def extremes(weights: Array | None) -> tuple[float, float] | None:
    """The smallest and the largest; None where there are none."""
    return None if weights is None or not len(weights) else (float(weights.min()), float(weights.max()))


def negative_weights(weights: Array | None, raw: RawGraph) -> str:
    """Where negative ones stand, if any are left after the policies."""
    if weights is None or raw.weights is None or not len(weights) or weights.min() >= 0:
        return ""
    return str(raw.weights.negative)


def weight_array(values: Array | None, wanted: str, path: Path, *, num_edges: int, names: Sequence[str]) -> Array:
    """[E] numbers out of the array that is named `wanted`; `names` are those there are."""
    if values is None:
        raise no_such_weights(wanted, path, names)
    if values.dtype.kind not in "biuf" or values.shape not in ((num_edges,), (num_edges, 1), (1, num_edges)):
        raise damaged(
            path, f"{wanted} is {values.dtype} of shape {values.shape}; needed: a number for each of {num_edges} edges"
        )
    return values.reshape(-1)


def weight_column(table: pyarrow.Table, wanted: str, path: Path) -> Array:
    """[rows] numbers, NaN where one is missing."""
    column = decoded(table.column(wanted))
    if not is_number(column):
        raise damaged(path, f"{wanted} has type {column.type}; weights are numbers")
    return number_values(column)


def no_such_weights(wanted: str, path: Path, names: Sequence[str]) -> DatasetError:
    near = difflib.get_close_matches(wanted, names, 1)
    return DatasetError(
        what=f"dataset.edge_weight: {wanted}, and {path} has no such weights",
        why=f"it has {', '.join(names[:12])}" if names else "its edges are two ends and nothing else",
        fix=f"write dataset.edge_weight: {(near or names)[0]}" if names else "remove dataset.edge_weight",
    )


def ignored_columns(names: Sequence[str], is_weighted: bool) -> str:
    shown = f"{'column' if len(names) == 1 else 'columns'} {', '.join(names)} ignored"
    return shown if is_weighted else f"{shown}; dataset.edge_weight names a column of weights"

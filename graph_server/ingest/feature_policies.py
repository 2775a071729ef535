"""Features become dense float32, checked and normalised: `nan`, then `normalize_features`.

Arithmetic is float64; what is handed over is rounded once.
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.memory import available_memory_bytes
from graph_server.ingest.raw_graph import Array, RawGraph, first_few

_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Features:
    """matrix float32 [N, F], C-contiguous."""

    matrix: Array
    normalization: str
    num_nan: int
    warnings: list[str] = field(default_factory=list)


def apply_feature_policies(raw: RawGraph, options: DatasetSpec, train: Array) -> Features:
    """train   bool [N]: the rows that `standard` and `nan: mean` may look at

    Raises DatasetError for no features, NaN (unless filled), Inf, values beyond float32 and too little memory.
    """
    if raw.features is None or raw.features.shape[1:] == (0,):
        raise DatasetError(
            what=f"the dataset has no features for its {raw.num_nodes} vertices",
            why=raw.why_no_features or "a model reads features",
            fix="add a features matrix, one row per vertex, or set dataset.features: degree or one_hot",
        )
    dense = _dense(raw.features, available_memory_bytes())
    num_nan = _fill_missing(dense, raw, options, train)
    matrix, warnings = _to_float32(dense, raw.node_ids)
    how = raw.usual_normalization if options.normalize_features == "auto" else options.normalize_features
    if how == "row":
        _normalize_rows(matrix, raw.node_ids)
    elif how == "standard":
        _standardize(matrix, train)
    return Features(matrix, how, num_nan, warnings)


def check_memory(num_nodes: int, width: int, available_bytes: int) -> None:
    """Refuses a dense float32 matrix that does not fit, before it is made."""
    needed = num_nodes * width * 4
    if needed > available_bytes:
        free = f"{available_bytes / 1e9:.1f} GB are free"
        raise DatasetError(
            what=f"features of {num_nodes} x {width} need {needed / 1e9:.1f} GB, {free}",
            why="features are held dense, as float32",
            fix="reduce the width of the features, or use a machine with more memory",
        )


def _dense(features: Array | scipy.sparse.csr_matrix, available_bytes: int) -> Array:
    """[N, F], a copy of its own; never the reader's."""
    if features.dtype.kind not in "biuf":
        raise DatasetError(f"features have dtype {features.dtype}", "a feature is a number", "convert the features")
    matrix = features[:, None] if features.ndim == 1 else features
    check_memory(matrix.shape[0], matrix.shape[1], available_bytes)
    if not isinstance(matrix, np.ndarray):
        return np.asarray(matrix.toarray())
    return matrix.copy()


def _fill_missing(dense: Array, raw: RawGraph, options: DatasetSpec, train: Array) -> int:
    """Fills NaN in place, by `options.nan`; how many there were."""
    if dense.dtype.kind != "f":
        return 0
    missing = np.isnan(dense)
    count = int(missing.sum())
    if not count:
        return 0
    if options.nan == "error":
        rows = missing.any(axis=1)
        where = f"vertices {first_few(raw.node_ids[rows])}"
        columns = np.flatnonzero(missing.any(axis=0))
        raise DatasetError(
            what=f"{count} feature values in {int(rows.sum())} rows are NaN or empty: {where}",
            why=f"one NaN makes every loss NaN; columns {first_few(columns)}",
            fix="fill them in, or set dataset.nan: zero or mean",
        )
    fill = np.zeros(dense.shape[1])
    if options.nan == "mean":
        known = ~missing[train]
        sums = np.where(known, dense[train], 0.0).sum(axis=0, dtype=np.float64)
        fill = sums / np.maximum(known.sum(axis=0), 1)
    dense[missing] = np.broadcast_to(fill, dense.shape)[missing]
    return count


def _to_float32(dense: Array, node_ids: Array) -> tuple[Array, list[str]]:
    with np.errstate(over="ignore"):
        matrix = np.ascontiguousarray(dense, dtype=np.float32)
    bad = ~np.isfinite(matrix)
    if count := int(bad.sum()):
        overflown = int((bad & np.isfinite(dense)).sum())
        where = first_few(node_ids[bad.any(axis=1)])
        raise DatasetError(
            what=f"{count} feature values are not finite in float32: vertices {where}",
            why=f"{overflown} are finite in {dense.dtype} but beyond 3.4e38, {count - overflown} are Inf in the file",
            fix="scale or clip the features",
        )
    if dense.dtype.kind in "iu" and (rounded := int((matrix.astype(dense.dtype) != dense).sum())):
        return matrix, [f"{rounded} integer features are above 2^24 and were rounded to float32"]
    return matrix, []


def _normalize_rows(matrix: Array, node_ids: Array) -> None:
    """Each row divided by its sum, in place; empty rows stay 0. Source: Kipf & Welling 2017, their code."""
    for start in range(0, len(matrix), _BLOCK_ROWS):
        block = matrix[start : start + _BLOCK_ROWS]
        sums = block.sum(axis=1, dtype=np.float64)
        hopeless = (sums == 0) & block.any(axis=1)
        if hopeless.any():
            where = first_few(node_ids[start : start + _BLOCK_ROWS][hopeless])
            raise DatasetError(
                what=f"vertices {where} have features that add up to 0",
                why="normalize_features: row divides by the sum",
                fix="set dataset.normalize_features: standard or none",
            )
        np.divide(block, np.where(sums == 0, 1.0, sums)[:, None], out=block, casting="same_kind")


def _standardize(matrix: Array, train: Array) -> None:
    """Each column to mean 0 and deviation 1 over the train rows, in place; a constant column becomes 0."""
    rows = matrix[train].astype(np.float64)
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    deviation[deviation == 0] = 1.0
    for start in range(0, len(matrix), _BLOCK_ROWS):
        block = matrix[start : start + _BLOCK_ROWS]
        block[:] = (block.astype(np.float64) - mean) / deviation

"""Writes a graph as Parquet, nothing changed: NAME.parquet/nodes.parquet and NAME.parquet/edges.parquet.

    nodes   id, label, train_mask, valid_mask, test_mask, features (lists of one length), as far as there are any
    edges   source, target: ids, in the order of the file; weight, where `edge_weight` named one

The Parquet reader gives the same graph back. Rows are written in groups, of which one at a time is held.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import scipy.sparse

from common.errors import DatasetError
from graph_server.ingest.parquet_facts import facts_of
from graph_server.ingest.raw_graph import MASK_NAMES, Array, RawGraph

SUFFIX, WEIGHT = ".parquet", "weight"
WEIGHTS_NOTE = f"weights of edges are the column {WEIGHT}: train with dataset.edge_weight: {WEIGHT}"
_GROUP_VALUES = 1 << 22
"""Values in a group of rows, at most."""


def write_parquet(raw: RawGraph, path: Path, edges: Iterator[pyarrow.Table] | None = None) -> None:
    """All or nothing: the files grow in a folder beside `path`, which is then renamed.

    edges   tables of `edge_table`, one at least, instead of those in `raw`

    Raises DatasetError if `path` is there, and for values that Parquet has no type for.
    """
    growing = path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}"
    path.parent.mkdir(parents=True, exist_ok=True)
    growing.mkdir()
    try:
        write_tables(growing / "nodes.parquet", _vertices(raw), None)
        write_tables(growing / "edges.parquet", edges or _edges(raw), facts_of(raw))
        refuse_existing(path)
        growing.rename(path)
    finally:
        shutil.rmtree(growing, ignore_errors=True)


def refuse_existing(path: Path) -> None:
    if path.exists():
        raise DatasetError(
            what=f"{path} is there already",
            why="a conversion replaces nothing",
            fix="choose another name, or remove it first",
        )


def write_tables(file: Path, groups: Iterator[pyarrow.Table], metadata: dict[bytes, bytes] | None) -> None:
    first = next(groups)
    schema = first.schema if metadata is None else first.schema.with_metadata(metadata)
    flat = [field.name for field in schema if not pyarrow.types.is_fixed_size_list(field.type)]
    with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", use_dictionary=flat) as writer:
        writer.write_table(first.cast(schema))
        for group in groups:
            writer.write_table(group.cast(schema))


def _edges(raw: RawGraph) -> Iterator[pyarrow.Table]:
    for rows in _groups(raw.num_edges, 2):
        weights = None if raw.weights is None else raw.weights.values[rows]
        yield edge_table(raw.node_ids, raw.sources[rows], raw.targets[rows], weights)


def edge_table(node_ids: Array, sources: Array, targets: Array, weights: Array | None = None) -> pyarrow.Table:
    """Out of rows."""
    columns = {"source": node_ids[sources], "target": node_ids[targets]}
    columns |= {} if weights is None else {WEIGHT: weights}
    return pyarrow.table({name: _column(values, name) for name, values in columns.items()})


def _vertices(raw: RawGraph) -> Iterator[pyarrow.Table]:
    columns: dict[str, Any] = {"id": raw.node_ids}
    if raw.labels is not None and raw.labels.shape[1:] != (0,):
        columns["label"] = raw.labels
    if raw.masks is not None:
        columns |= {f"{name}_mask": raw.masks[name] for name in MASK_NAMES}
    if raw.features is not None and raw.features.shape[1:] != (0,):
        columns["features"] = raw.features if raw.features.ndim == 2 else raw.features[:, None]
    width = sum(1 if column.ndim == 1 else column.shape[1] for column in columns.values())
    for rows in _groups(raw.num_nodes, width):
        yield pyarrow.table({name: _column(column[rows], name) for name, column in columns.items()})


def _groups(num_rows: int, width: int) -> Iterator[slice]:
    """One at least, so that an empty table has its columns."""
    step = max(_GROUP_VALUES // width, 1)
    for start in range(0, max(num_rows, 1), step):
        yield slice(start, min(start + step, num_rows))


def _column(values: Array | scipy.sparse.csr_matrix, name: str) -> pyarrow.Array:
    """[rows], or lists out of [rows, width]; Arrow knows no foreign byte order."""
    dense = values if isinstance(values, np.ndarray) else np.asarray(values.toarray())
    native = dense.astype(dense.dtype.newbyteorder("="), copy=False)
    try:
        flat = pyarrow.array(np.ascontiguousarray(native).reshape(-1))
    except (pyarrow.ArrowException, NotImplementedError) as error:
        raise DatasetError(
            what=f"{name} are {dense.dtype}", why=f"Parquet has no such type: {error}", fix="convert the values first"
        ) from error
    return flat if dense.ndim == 1 else pyarrow.FixedSizeListArray.from_arrays(flat, dense.shape[1])

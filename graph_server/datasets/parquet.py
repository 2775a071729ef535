"""Parquet: a table of vertices and a table of edges, each one file or many; or a table of edges alone.

    edges       source and target (src/dst, from/to, sourceNodeId/targetNodeId, ...); type: relationshipType, etype;
                weights: the column that `edge_weight` names
    vertices    id, features, label, split: see the names in graph_server/ingest/node_table.py

Which file is which is told by its columns, not by its name. Files below one folder are read in natural order. Of
several types one is picked. The tables do not say whether edges go both ways, unless Dorylus wrote them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.arrow_columns import column_names, damage_of, decoded, id_values, is_text, plain_name
from graph_server.ingest.edge_rows import weighted_edge_rows
from graph_server.ingest.edge_text import SOURCE_HEADERS, TARGET_HEADERS, EdgeTable
from graph_server.ingest.edge_weights import ignored_columns, no_such_weights, weight_column
from graph_server.ingest.heterogeneous import pick_kind
from graph_server.ingest.node_index import NodeIndex, unique_index
from graph_server.ingest.node_table import NodeTable, read_node_table
from graph_server.ingest.parquet_facts import ParquetFacts, read_facts
from graph_server.ingest.part_files import natural_order
from graph_server.ingest.raw_graph import RawGraph, ReaderDefaults
from graph_server.ingest.vertex_rows import index_of_ends

LOOKS_FOR = "Parquet: a file with source and target columns, or a folder with it and a file of vertices"
DEFAULTS: ReaderDefaults = {}

TYPES = ("relationshiptype", "edgetype", "etype", "reltype", "relation", "type")
_SOURCES = {plain_name(name) for name in SOURCE_HEADERS}
_TARGETS = {plain_name(name) for name in TARGET_HEADERS}
_MARK = b"PAR1"


class _Ends(NamedTuple):
    """The columns of a file of edges."""

    source: str
    target: str
    type: str | None
    others: tuple[str, ...]
    weight: str | None = None


def detect(path: Path) -> bool:
    """A file that begins as Parquet, or a folder with such files, named `*.parquet*`, at most three levels down."""
    if path.is_file():
        return _is_parquet(path)
    return path.is_dir() and any(_files(path))


def read(path: Path, options: DatasetSpec) -> RawGraph:
    """`edge_type` and `node_type` pick a part of tables with several types."""
    files = [path] if path.is_file() else _files(path)
    ends = {file: _ends(_schema(file)) for file in files}
    edge_files = [file for file in files if ends[file] is not None]
    if not edge_files:
        raise DatasetError(
            what=f"{path} holds no table of edges: {', '.join(file.name for file in files[:5])}",
            why="no file has a column for the source and one for the target of an edge",
            fix=f"name them {SOURCE_HEADERS[0]} and {TARGET_HEADERS[0]}",
        )
    nodes = _nodes([file for file in files if ends[file] is None], options)
    tables, edge_type, notes = _edges(edge_files, options)
    negative = options.negative_ids
    index = index_of_ends(tables, negative=negative) if nodes is None else _index(nodes, files, negative)
    edges = weighted_edge_rows(tables, index, options.drop_unknown_edges)
    alone = f"{path.name} holds edges alone: it has no table of vertices"
    facts = _facts(edge_files)
    return RawGraph(
        format="parquet",
        node_ids=index.node_ids,
        sources=edges.sources,
        targets=edges.targets,
        features=None if nodes is None else nodes.features,
        labels=None if nodes is None else nodes.labels,
        masks=None if nodes is None else nodes.masks,
        edges_are_a_set=facts.edges_are_a_set,
        undirected=facts.undirected,
        usual_normalization=facts.usual_normalization,
        task=facts.task,
        defaults=DEFAULTS,
        notes=(*notes, *edges.notes, *(() if nodes is None else nodes.notes)),
        why_no_features=alone if nodes is None else "the table of vertices has no columns of numbers or lists",
        why_no_labels=alone if nodes is None else "the table of vertices has no column named label, y or class",
        edge_type=edge_type,
        node_type=None if nodes is None else nodes.kind,
        weights=edges.weights,
    )


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == _MARK
    except OSError:
        return False


def _files(folder: Path) -> list[Path]:
    found = {file for depth in ("*", "*/*", "*/*/*") for file in folder.glob(f"{depth}.parquet*") if file.is_file()}
    shown = [file for file in found if not file.name.startswith((".", "_"))]
    return sorted((file for file in shown if _is_parquet(file)), key=natural_order)


def _schema(file: Path) -> pyarrow.Schema:
    with damage_of(file):
        schema = pyarrow.parquet.read_schema(file)
    column_names(schema, file)
    return schema


def _facts(edge_files: Sequence[Path]) -> ParquetFacts:
    """Of several files none speaks for the others."""
    if len(edge_files) > 1:
        return ParquetFacts()
    return read_facts(_schema(edge_files[0]).metadata, edge_files[0])


def _ends(schema: pyarrow.Schema) -> _Ends | None:
    names = {plain_name(name): name for name in reversed(schema.names)}
    source = next((names[name] for name in names if name in _SOURCES), None)
    target = next((names[name] for name in names if name in _TARGETS), None)
    if source is None or target is None:
        return None
    kind = next((names[name] for name in TYPES if name in names), None)
    return _Ends(source, target, kind, tuple(name for name in schema.names if name not in (source, target, kind)))


def _table(files: Sequence[Path], columns: Sequence[str] | None = None) -> pyarrow.Table:
    """Rows of all files, in order. `ParquetFile`, not a data set: names of folders are no columns."""
    with damage_of(files[0].parent if len(files) > 1 else files[0]):
        parts = []
        for file in files:
            with pyarrow.parquet.ParquetFile(file) as part:
                parts.append(part.read(columns=columns))
        return pyarrow.concat_tables(parts)


def _nodes(files: Sequence[Path], options: DatasetSpec) -> NodeTable | None:
    if not files:
        return None
    where = files[0] if len(files) == 1 else files[0].parent
    return read_node_table(_table(files), where, node_type=options.node_type)


def _index(nodes: NodeTable, files: Sequence[Path], negative: bool) -> NodeIndex:
    ids = np.arange(nodes.num_nodes, dtype=np.int64) if nodes.ids is None else nodes.ids
    return unique_index(ids, nodes.lines, files[0].parent, unit="row", negative=negative)


def _edges(files: Sequence[Path], options: DatasetSpec) -> tuple[list[EdgeTable], str | None, tuple[str, ...]]:
    types: set[str] = set()
    tables: list[tuple[Path, _Ends, pyarrow.Table]] = []
    for file in files:
        ends = _ends(_schema(file))
        assert ends is not None, "only files of edges come here"
        ends = _weighted(ends, options.edge_weight, file)
        table = _table([file], [name for name in (*ends[:3], ends.weight) if name])
        if ends.type and not is_text(decoded(table.column(ends.type))):
            ends = ends._replace(type=None, others=(*ends.others, ends.type))
        if ends.type:
            types |= {str(kind) for kind in decoded(table.column(ends.type)).unique().to_pylist()}
        tables.append((file, ends, table))
    chosen = pick_kind("edge_type", sorted(types), options.edge_type, files[0]) if types else None
    others = tables[0][1].others
    note = f"{files[0].name}: {ignored_columns(others, options.edge_weight is not None)}"
    return [_ends_of(file, ends, table, chosen) for file, ends, table in tables], chosen, (note,) * bool(others)


def _weighted(ends: _Ends, weight: str | None, file: Path) -> _Ends:
    if weight is None:
        return ends
    if weight not in ends.others:
        raise no_such_weights(weight, file, ends.others)
    return ends._replace(weight=weight, others=tuple(name for name in ends.others if name != weight))


def _ends_of(file: Path, ends: _Ends, table: pyarrow.Table, chosen: str | None) -> EdgeTable:
    rows = np.arange(table.num_rows)
    if ends.type and chosen is not None:
        keep = pyarrow.compute.equal(decoded(table.column(ends.type)).fill_null("None"), chosen)
        table, rows = table.filter(keep), rows[keep.to_numpy()]
    source, target = (id_values(decoded(table.column(name)), name, file) for name in ends[:2])
    weights = None if ends.weight is None else weight_column(table, ends.weight, file)
    return EdgeTable(file, source, target, rows, unit="row", weights=weights)


def example(folder: Path) -> Path:
    """Writes a small dataset into an empty folder: a ring of four vertices. Returns what `dataset.path` would be."""
    edges = {"source": [0, 1, 2, 3], "target": [1, 2, 3, 0]}
    vertices = {
        "id": [0, 1, 2, 3],
        "features": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 0.0]],
        "label": ["a", "b", "a", "b"],
        "split": ["train", "train", "valid", "test"],
    }
    for name, table in {"edges": edges, "nodes": vertices}.items():
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"{name}.parquet")
    return folder

"""A graph of Parquet tables as `dorylus convert` and `dorylus generate` write them, in bounded memory.

One table of vertices with a column of lists for features, one of edges. Ids, labels and masks are held; features and
edges go through piece by piece, under the same policies as of a graph that is read whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.graph.csr import Ints, Weights
from graph_server.ingest.arrow_columns import damage_of, decoded, id_values, is_list, matrix_values
from graph_server.ingest.edge_text import SOURCE_HEADERS, TARGET_HEADERS
from graph_server.ingest.edge_weights import checked_weights, no_such_weights, seen, weight_column
from graph_server.ingest.feature_policies import apply_feature_policies
from graph_server.ingest.node_index import NodeIndex, unique_index, unknown_ids
from graph_server.ingest.node_table import read_node_table
from graph_server.ingest.parquet_facts import read_facts
from graph_server.ingest.raw_graph import Array, RawGraph
from graph_server.large.large_dataset import refuse_what_needs_all
from graph_server.large.pair_file import BATCH, EdgeBatch

NODES, EDGES = "nodes.parquet", "edges.parquet"
ROWS = 1 << 16


@dataclass(eq=False)
class ParquetGraph:
    """raw: without edges and features; when edges have been read it says where negative weights stand."""

    folder: Path
    raw: RawGraph
    index: NodeIndex
    list_column: str
    edge_weight: str | None = None

    @classmethod
    def open(cls, folder: Path, options: DatasetSpec) -> "ParquetGraph":
        """Raises DatasetError if it is not laid out so, or vertices are not as they should be."""
        for name in (NODES, EDGES):
            if not (folder / name).is_file():
                raise _not_so(folder, f"it has no {name}")
        with damage_of(folder):
            schema, edge_schema = (pyarrow.parquet.read_schema(folder / name) for name in (NODES, EDGES))
        lists = [field.name for field in schema if is_list(field) and field.name != "label"]
        if len(lists) != 1:
            raise _not_so(folder, f"{NODES} has {len(lists)} columns of lists, not one of features")
        others = [name for name in schema.names if name != lists[0]]
        with damage_of(folder / NODES):
            table = pyarrow.parquet.read_table(folder / NODES, columns=others)
        nodes = read_node_table(table, folder / NODES, node_type=options.node_type)
        ids = np.arange(nodes.num_nodes, dtype=np.int64) if nodes.ids is None else nodes.ids
        facts = read_facts(edge_schema.metadata, folder / EDGES)
        nothing = np.zeros(0, np.int64)
        raw = RawGraph(
            format="parquet",
            node_ids=ids,
            sources=nothing,
            targets=nothing,
            features=None,
            labels=nodes.labels,
            masks=nodes.masks,
            edges_are_a_set=facts.edges_are_a_set,
            undirected=facts.undirected,
            usual_normalization=facts.usual_normalization,
            task=facts.task,
            notes=nodes.notes,
        )
        index = unique_index(ids, nodes.lines, folder, unit="row", negative=options.negative_ids)
        return cls(folder, raw, index, lists[0], options.edge_weight)

    @property
    def num_features(self) -> int:
        kind = pyarrow.parquet.read_schema(self.folder / NODES).field(self.list_column).type
        if pyarrow.types.is_fixed_size_list(kind):
            return int(kind.list_size)
        with pyarrow.parquet.ParquetFile(self.folder / NODES) as file:
            first = next(file.iter_batches(1, columns=[self.list_column]))
        return len(first.column(0)[0])

    def edges(self) -> Iterator[EdgeBatch]:
        path, before, wanted = self.folder / EDGES, 0, self.edge_weight
        self.raw = replace(self.raw, weights=None)
        with damage_of(path), pyarrow.parquet.ParquetFile(path) as file:
            names = {name.lower().replace("_", ""): name for name in reversed(file.schema_arrow.names)}
            columns = [
                next((names[known.replace("_", "")] for known in headers if known.replace("_", "") in names), None)
                for headers in (SOURCE_HEADERS, TARGET_HEADERS)
            ]
            if None in columns:
                raise _not_so(self.folder, f"{EDGES} has no columns of sources and targets")
            others = [name for name in file.schema_arrow.names if name not in columns]
            if wanted is not None and wanted not in others:
                raise no_such_weights(wanted, path, others)
            for batch in file.iter_batches(BATCH, columns=[*columns, *([] if wanted is None else [wanted])]):
                table = pyarrow.Table.from_batches([batch])
                sources, targets = (self._rows(table, str(name), path, before) for name in columns)
                weights = None if wanted is None else self._weights(table, wanted, path, before)
                before += len(sources)
                yield EdgeBatch(sources, targets, weights)

    def features(self, options: DatasetSpec, train: Array, file: Path) -> Array:
        """[N, F] float32, mapped from `file`, where it grows."""
        refuse_what_needs_all(options, self.raw)
        shape = (self.raw.num_nodes, self.num_features)
        mapped: Array = np.lib.format.open_memmap(file, "w+", np.float32, shape)
        with damage_of(self.folder / NODES), pyarrow.parquet.ParquetFile(self.folder / NODES) as table:
            before = 0
            for batch in table.iter_batches(ROWS, columns=[self.list_column]):
                rows = slice(before, before + batch.num_rows)
                column = decoded(pyarrow.chunked_array([batch.column(0)]))
                values = matrix_values(column, self.list_column, self.folder / NODES, np.arange(rows.start, rows.stop))
                piece = replace(self.raw, node_ids=self.raw.node_ids[rows], features=values)
                mapped[rows] = apply_feature_policies(piece, options, train[rows]).matrix
                before = rows.stop
        return mapped

    def _rows(self, table: pyarrow.Table, name: str, path: Path, before: int) -> Ints:
        ids = id_values(decoded(table.column(name)), name, path)
        rows = self.index.rows(ids)
        if (rows < 0).any():
            unknown = np.flatnonzero(rows < 0)
            raise unknown_ids(self.index, ids[unknown], unknown + before, path, where="row")
        return rows

    def _weights(self, table: pyarrow.Table, wanted: str, path: Path, before: int) -> Weights:
        lines = np.arange(before, before + table.num_rows)
        found = checked_weights(weight_column(table, wanted, path), path, lines=lines, unit="row")
        self.raw = seen(self.raw, found)
        return found.values


def _not_so(folder: Path, why: str) -> DatasetError:
    return DatasetError(
        what=f"{folder} cannot be read piece by piece",
        why=why,
        fix="write it with dorylus convert NAME.parquet first, or leave --memory-limit away",
    )

"""A list of edges as Parquet, in bounded memory: edges go through piece by piece; vertices, and what is known of them,
are held."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow

from common.job_spec import DatasetSpec
from graph_server.datasets.edge_list import read_ends
from graph_server.ingest.edge_rows import weighted_edge_rows
from graph_server.ingest.edge_text import edge_pieces
from graph_server.ingest.node_index import NodeIndex
from graph_server.ingest.raw_graph import Array
from graph_server.ingest.write_parquet import WEIGHTS_NOTE, edge_table, write_parquet
from graph_server.large.sorted_edges import BESIDE_BYTES


@dataclass
class Written:
    num_nodes: int = 0
    num_edges: int = 0
    num_dropped: int = 0
    notes: list[str] = field(default_factory=list)


def edges_to_parquet(path: Path, options: DatasetSpec, out: Path, memory_bytes: int) -> Written:
    """The same files as of a graph that is read whole. Raises DatasetError; then nothing is written."""
    raw, index, files = read_ends(path, options, memory_bytes - BESIDE_BYTES)
    written = Written(raw.num_nodes)
    write_parquet(raw, out, _tables(files, index, options, written))
    written.notes += raw.notes
    written.notes += [WEIGHTS_NOTE] * (options.edge_weight is not None)
    if written.num_dropped:
        written.notes.append(f"{written.num_dropped} edges name a vertex that does not exist: dropped")
    return written


def _tables(files: list[Path], index: NodeIndex, options: DatasetSpec, written: Written) -> Iterator[pyarrow.Table]:
    nothing: Array = index.node_ids[:0]
    nothing, wanted = nothing.astype("int64"), options.edge_weight
    yield edge_table(index.node_ids, nothing, nothing, None if wanted is None else nothing.astype("float32"))
    for file in files:
        for table in edge_pieces(file, index.is_text, wanted):
            written.notes += table.notes
            found = weighted_edge_rows([table], index, options.drop_unknown_edges)
            written.num_edges += len(found.sources)
            written.num_dropped += len(table.sources) - len(found.sources)
            weights = found.weights and found.weights.values
            yield edge_table(index.node_ids, found.sources, found.targets, weights)

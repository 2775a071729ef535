"""A folder of an edge list, features and labels: its edges go to disk as rows, piece by piece; the rest is held."""

from collections.abc import Iterator
from pathlib import Path

from common.job_spec import DatasetSpec
from graph_server.datasets.edge_list import read_vertices
from graph_server.ingest.edge_rows import weighted_edge_rows
from graph_server.ingest.edge_text import edge_pieces
from graph_server.ingest.edge_weights import seen
from graph_server.ingest.feature_policies import apply_feature_policies
from graph_server.ingest.raw_graph import Array
from graph_server.large.large_dataset import refuse_what_needs_all
from graph_server.large.pair_file import EdgeBatch, PairFile


class EdgeListGraph:
    """Text is parsed once; later looks are at the file of rows in `scratch`."""

    def __init__(self, folder: Path, options: DatasetSpec, scratch: Path) -> None:
        self.folder = folder
        self.raw, index, files = read_vertices(folder, options)
        wanted = options.edge_weight
        with PairFile(scratch / "rows", weighted=wanted is not None) as self._rows:
            for table in (table for file in files for table in edge_pieces(file, index.is_text, wanted)):
                found = weighted_edge_rows([table], index, options.drop_unknown_edges)
                self._rows.add(found.sources, found.targets, found.weights and found.weights.values)
                self.raw = seen(self.raw, found.weights)

    def edges(self) -> Iterator[EdgeBatch]:
        return self._rows.batches()

    def features(self, options: DatasetSpec, train: Array, file: Path) -> Array:
        if options.features != "file":
            refuse_what_needs_all(options, self.raw)
        return apply_feature_policies(self.raw, options, train).matrix

"""Writes a made-up graph as Parquet, piece by piece: NAME.parquet/nodes.parquet and edges.parquet, as `dorylus convert`
does. What is held at once does not grow with the graph.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow

from graph_server.generate.recipe import Recipe, edges_of, features_of, labels_of, masks_of, pieces
from graph_server.ingest.masks import BITS
from graph_server.ingest.parquet_facts import ParquetFacts, metadata_of
from graph_server.ingest.write_parquet import refuse_existing, write_tables

ROWS = 1 << 16
"""Vertices in a group of rows."""


def generate(recipe: Recipe, path: Path) -> None:
    """All or nothing. Raises SpecError for a recipe that is none, DatasetError if `path` is there."""
    recipe.check()
    refuse_existing(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    growing = path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}"
    growing.mkdir()
    try:
        write_tables(growing / "nodes.parquet", _vertices(recipe), None)
        facts = ParquetFacts(edges_are_a_set=True, undirected=True, task="multi_class")
        write_tables(growing / "edges.parquet", _edges(recipe), metadata_of(facts))
        refuse_existing(path)
        growing.rename(path)
    finally:
        shutil.rmtree(growing, ignore_errors=True)


def _vertices(recipe: Recipe) -> Iterator[pyarrow.Table]:
    for number, first, last in pieces(recipe.num_vertices):
        features = features_of(recipe, number, first, last)
        for start in range(first, last, ROWS):
            ids = np.arange(start, min(start + ROWS, last))
            masks = masks_of(recipe, ids)
            flat = pyarrow.array(features[ids[0] - first : ids[-1] + 1 - first].reshape(-1))
            yield pyarrow.table(
                {
                    "id": ids,
                    "label": labels_of(recipe, ids),
                    **{f"{name}_mask": masks == bit for name, bit in BITS.items()},
                    "features": pyarrow.FixedSizeListArray.from_arrays(flat, recipe.num_features),
                }
            )


def _edges(recipe: Recipe) -> Iterator[pyarrow.Table]:
    """One group of rows at least, so that a table without edges has its columns."""
    nothing = np.zeros(0, np.int64)
    if not recipe.num_edges:
        yield pyarrow.table({"source": nothing, "target": nothing})
    for number, first, last in pieces(recipe.num_edges):
        sources, targets = edges_of(recipe, number, last - first)
        yield pyarrow.table({"source": sources, "target": targets})

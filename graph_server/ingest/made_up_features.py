"""Features for graphs that have none: `degree`, the in-degree after all edge policies; `one_hot`, a column a vertex.

With `one_hot` a model learns a vector for each vertex, and nothing for a vertex it has not seen. Dense, it grows with
the square of the graph: above 20,000 vertices it is refused.
"""

from dataclasses import replace

import numpy as np
import scipy.sparse

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.raw_graph import Array, RawGraph

MOST_ONE_HOT = 20_000


def make_up_features(raw: RawGraph, options: DatasetSpec, targets: Array) -> RawGraph:
    """The same graph with features [N, 1] or [N, N], when `options.features` asks for them.

    targets   int64 [E], as they stand after direction and duplicates
    """
    if options.features == "file":
        return raw
    left_out = () if raw.features is None else (f"the file's {raw.features.shape[-1]} features are not used",)
    if options.features == "degree":
        return replace(
            raw,
            features=_degrees(raw, options, targets),
            usual_normalization="standard",
            notes=(*raw.notes, *left_out, "features: the in-degree of each vertex, one column"),
        )
    return replace(
        raw,
        features=_one_hot(raw.num_nodes),
        usual_normalization="none",
        notes=(*raw.notes, *left_out, "features: one-hot, one column for each vertex"),
    )


def _degrees(raw: RawGraph, options: DatasetSpec, targets: Array) -> Array:
    if options.normalize_features == "row":
        raise DatasetError(
            what="features: degree with normalize_features: row",
            why="the degree is one column, and a row of one column divided by its sum is 1 for every vertex",
            fix="set dataset.normalize_features: standard or none",
        )
    return np.bincount(targets, minlength=raw.num_nodes).astype(np.float64)[:, None]


def _one_hot(num_nodes: int) -> scipy.sparse.csr_matrix:
    if num_nodes > MOST_ONE_HOT:
        raise DatasetError(
            what=f"features: one_hot for {num_nodes} vertices, at most {MOST_ONE_HOT}",
            why=f"the matrix would be {num_nodes} x {num_nodes}: {num_nodes**2 * 4 / 1e9:.1f} GB",
            fix="set dataset.features: degree",
        )
    return scipy.sparse.csr_matrix(scipy.sparse.identity(num_nodes, dtype=np.float32, format="csr"))

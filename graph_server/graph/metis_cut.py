"""The METIS cut, by name only, in a process of its own: METIS crashes the process it runs in on some graphs.

Known triggers are duplicate edges, one part, and about as many parts as vertices. So METIS gets a private copy that is
symmetric, without duplicates and loops; one cluster and one cluster per vertex are made here. There is no fallback:
whoever asks for METIS gets METIS or an error.

`python -m graph_server.graph.metis_cut FOLDER NUM_CLUSTERS SEED` reads indptr.npy, indices.npy and weights.npy and
writes clusters.npy.
"""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from common.errors import DatasetError
from graph_server.graph.csr import Csr, Ints, in_degree, simple

TIMEOUT_SECONDS = 3600.0
"""METIS needs a few seconds per 100 million edges; this is for a METIS that hangs."""


def metis_clusters(structure: Csr, num_clusters: int, *, seed: int, timeout_seconds: float = TIMEOUT_SECONDS) -> Ints:
    """The cluster of each vertex, [V] int64, balanced in degree + 1.

    structure  symmetric; duplicates and self loops may be there, METIS does not see them

    Raises DatasetError if pymetis is not installed, if METIS crashes or if it does not end in time.
    """
    bare = simple(structure)
    if num_clusters == 1 or len(bare.indices) == 0 or num_clusters >= structure.num_rows:
        return np.arange(structure.num_rows) % num_clusters
    if importlib.util.find_spec("pymetis") is None:
        raise DatasetError(
            what="cut.method = 'metis', and pymetis is not installed",
            why="pymetis is a compiled library, and there is no wheel of it for Linux arm64",
            fix="set cut.method = 'stream', or cut on another machine and copy the graph folder",
        )
    with tempfile.TemporaryDirectory(prefix="dorylus-metis-") as name:
        folder = Path(name)
        np.save(folder / "indptr.npy", bare.indptr)
        np.save(folder / "indices.npy", bare.indices.astype(np.int64))
        np.save(folder / "weights.npy", in_degree(structure) + 1)
        return run(folder, num_clusters, seed, timeout_seconds=timeout_seconds)


def run(folder: Path, num_clusters: int, seed: int, *, timeout_seconds: float) -> Ints:
    """Start METIS on the arrays of a folder, wait, read its answer."""
    command = [sys.executable, "-m", "graph_server.graph.metis_cut", str(folder), str(num_clusters), str(seed)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=timeout_seconds, check=False)
    except subprocess.TimeoutExpired:
        raise _failed(f"it did not end within {timeout_seconds:g} s") from None
    if child.returncode != 0:
        how = f"exit status {child.returncode}" if child.returncode > 0 else f"killed by signal {-child.returncode}"
        raise _failed(f"{how}: {child.stderr.strip()[-2000:] or 'it said nothing'}")
    clusters: Ints = np.load(folder / "clusters.npy")
    return clusters


def _failed(why: str) -> DatasetError:
    return DatasetError(what="METIS could not cut this graph", why=why, fix="set cut.method = 'stream'")


def main(folder: Path, num_clusters: int, seed: int) -> None:
    """The child's part."""
    import pymetis

    options = pymetis.Options(seed=seed % 2**31)
    indptr, indices, weights = (np.load(folder / f"{name}.npy") for name in ("indptr", "indices", "weights"))
    _, clusters = pymetis.part_graph(num_clusters, xadj=indptr, adjncy=indices, vweights=weights, options=options)
    np.save(folder / "clusters.npy", np.asarray(clusters, np.int64))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

"""Rebuilds cora.npz: the citation graph Cora, out of the Apache-2.0 wheel of graphdatascience 2.2.

    python -m graph_server.datasets.bundled.build_cora [--wheel FILE] [--output FILE]

The only module of this project that asks a package registry, and only when no wheel is given. The wheel's data files
are checked against their SHA-256, the split is drawn by a fixed seed, the archive bears fixed dates: every run writes
the same arrays, and with one zlib the same bytes.
"""

import argparse
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import scipy.sparse

from common.errors import DatasetError
from graph_server.ingest.masks import draw_public_style_split
from graph_server.ingest.raw_graph import Array

REQUIREMENT = "graphdatascience==2.2"
NODES = "graphdatascience/resources/cora/cora_nodes.parquet.gzip"
RELATIONS = "graphdatascience/resources/cora/cora_rels.parquet.gzip"
SHA256 = {
    NODES: "c54c0625af98570287dcb25e9f29e0b229948352a8de1dbf202fa39f36bfe591",
    RELATIONS: "e0059f81e607c0262e93fbe3c77950b06098dab167f0071cba97a82c9440ca01",
}
OUTPUT = Path(__file__).parent / "cora.npz"
SPLIT_SEED = 0
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)

CLASS_NAMES = (
    "Neural_Networks",
    "Rule_Learning",
    "Reinforcement_Learning",
    "Probabilistic_Methods",
    "Theory",
    "Genetic_Algorithms",
    "Case_Based",
)


def fetch_wheel(folder: Path) -> Path:
    """Downloads the wheel by pip; uv's own environments have none, so the system's Python may have to help."""
    for python in (sys.executable, ".uv/bin/python", "python3"):
        command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        try:
            subprocess.run([*command, "--dest", str(folder), REQUIREMENT], check=True, capture_output=True, timeout=300)
            return next(folder.glob("*.whl"))
        except (OSError, subprocess.SubprocessError, StopIteration):
            continue
    raise DatasetError(
        what=f"{REQUIREMENT} could not be downloaded",
        why="no Python with pip was found, or the registry did not answer",
        fix="download the wheel yourself and pass it with --wheel",
    )


def read_wheel(wheel: Path) -> tuple[bytes, bytes]:
    """The two Parquet files, checked."""
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in SHA256}
    for name, expected in SHA256.items():
        if (found := hashlib.sha256(contents[name]).hexdigest()) != expected:
            raise DatasetError(
                f"{name} has SHA-256 {found}", f"expected {expected}", "use the wheel of the version named"
            )
    return contents[NODES], contents[RELATIONS]


def arrays_of(nodes: bytes, relations: bytes) -> dict[str, Array]:
    """The gnn-benchmark arrays, in the order of the source's rows; small integer types."""
    node_table, relation_table = (pyarrow.parquet.read_table(io.BytesIO(data)) for data in (nodes, relations))
    ids = node_table["nodeId"].to_numpy()
    features = scipy.sparse.csr_matrix(np.array(node_table["features"].to_pylist(), dtype=np.uint8))
    labels = node_table["subject"].to_numpy()
    row_of = {node_id: row for row, node_id in enumerate(ids.tolist())}
    ends = [
        np.array([row_of[node_id] for node_id in relation_table[name].to_pylist()], dtype=np.int32)
        for name in ("sourceNodeId", "targetNodeId")
    ]
    ones = np.ones(len(ends[0]), dtype=np.uint8)
    adjacency = scipy.sparse.csr_matrix((ones, tuple(ends)), shape=(len(ids), len(ids)))
    split = draw_public_style_split(labels, SPLIT_SEED, train_per_class=20, num_valid=500, num_test=1000)
    return {
        **_csr_arrays("adj", adjacency),
        **_csr_arrays("attr", features),
        "labels": labels.astype(np.uint8),
        "node_names": ids.astype(np.int32),
        "class_names": np.array(CLASS_NAMES),
        "undirected": np.array(True),
        **{f"{name}_mask": mask for name, mask in split.items()},
    }


def _csr_arrays(prefix: str, matrix: scipy.sparse.csr_matrix) -> dict[str, Array]:
    matrix.sort_indices()
    return {
        f"{prefix}_data": matrix.data.astype(np.uint8),
        f"{prefix}_indices": matrix.indices.astype(np.uint16),
        f"{prefix}_indptr": matrix.indptr.astype(np.int32),
        f"{prefix}_shape": np.array(matrix.shape, dtype=np.int32),
    }


def write_npz(arrays: Mapping[str, Array], path: Path) -> None:
    """As numpy.savez_compressed, but with fixed dates and order."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(arrays[name], order="C"), allow_pickle=False)
            entry: Any = zipfile.ZipInfo(f"{name}.npy", date_time=_ZIP_DATE)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, buffer.getvalue(), compresslevel=9)


def main() -> None:
    parser = argparse.ArgumentParser(description="Rebuild the bundled Cora.")
    parser.add_argument("--wheel", type=Path, help=f"the wheel of {REQUIREMENT}; downloaded when not given")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = arguments.wheel or fetch_wheel(Path(folder))
        write_npz(arrays_of(*read_wheel(wheel)), arguments.output)


if __name__ == "__main__":
    main()

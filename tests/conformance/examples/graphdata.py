"""A ring of four vertices as GraphData packs it. The reader may not write it: its matrices are pickles."""

from pathlib import Path

from tests.graph_server.datasets.folders import write_graphdata


def example(folder: Path) -> Path:
    return write_graphdata(folder / "ring.npz")

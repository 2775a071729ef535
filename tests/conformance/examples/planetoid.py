"""A small Planetoid dataset: its files are pickles, which the format's own file may not write."""

from pathlib import Path

from tests.graph_server.datasets.folders import write_planetoid


def example(folder: Path) -> Path:
    return write_planetoid(folder)

"""A graph folder of four vertices in a ring, in two intervals: readers write none."""

from pathlib import Path

import numpy as np

from graph_server.graph.csr import EdgeList
from graph_server.graph.cut import make_cut
from graph_server.graph.graph_folder import write_graph_folder
from tests.graph_server.datasets.folders import applied, masks, raw_graph


def example(folder: Path) -> Path:
    raw = raw_graph(node_ids=np.array([7, 3, 5, 1]), labels=np.array([4, 9, 4, -1]), masks=masks([0, 1], [2], []))
    dataset = applied(raw, directed=False)
    cut = make_cut(EdgeList(dataset.sources, dataset.targets, 4), 2, method="hash", seed=0)
    write_graph_folder(dataset, cut, folder / "ring.dorylus")
    return folder / "ring.dorylus"

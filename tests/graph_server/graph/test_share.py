"""A graph server's share of a graph folder is enough for its partition, and no file of it is too much."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.partition import Partition, deal_folder
from graph_server.graph.partition_book import PartitionBook
from graph_server.graph.share import files_of_server
from tests.graph_server.graph.graphs import Graph, folder_of, random_cut

SERVERS, INTERVALS, NODES = 3, 9, 90


def ring(*, directed: bool, weighted: bool = False) -> Graph:
    """Vertices read the two before them: an interval reads a neighbour or two, and nobody reads all."""
    here = np.arange(NODES)
    sources, targets = np.concatenate([here, here]), np.concatenate([(here + 1) % NODES, (here + 2) % NODES])
    if not directed:
        sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    weights = (1 + np.arange(len(sources))).astype(np.float32) if weighted else None
    return replace(Graph(sources, targets, NODES, directed=directed), weights=weights)


def only(folder: GraphFolder, names: frozenset[str], place: Path) -> GraphFolder:
    """A folder with no other files."""
    for name in (*names, "manifest.json"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder.path / name, place / name)
    return GraphFolder.open(place, only=names)


def read_all(folder: GraphFolder, book: PartitionBook, server: int, *, ghost_features: bool) -> list[np.ndarray]:
    """Whatever a graph server reads when it loads."""
    part = Partition.load(folder, deal_folder(folder, SERVERS), server)
    assert part.own == book.own_intervals(server)
    read = [edges.columns for edges in (part.in_edges, part.out_edges)]
    read += [part.in_degree, part.ghost_in_degree, part.ghost_has_self_loop, part.has_self_loop]
    read += [np.array(of(interval)) for interval in part.own for of in (part.features, part.labels, part.masks)]
    return [*read, part.ghost_features()] if ghost_features else read


@pytest.mark.parametrize("ghost_features", [False, True])
@pytest.mark.parametrize(("directed", "weighted"), [(False, False), (True, False), (True, True)])
def test_a_share_is_enough_and_no_more(tmp_path: Path, directed: bool, weighted: bool, ghost_features: bool):
    graph = ring(directed=directed, weighted=weighted)
    cut = replace(random_cut(graph, INTERVALS), order=np.arange(NODES), bounds=np.arange(0, NODES + 1, 10))
    folder = folder_of(graph, cut, tmp_path)
    assert folder.manifest.weighted == weighted
    book = deal_folder(folder, SERVERS)
    for server in range(SERVERS):
        share = files_of_server(folder, book, server, ghost_features=ghost_features)
        assert len(share) < len(folder.manifest.files) / 2
        part = only(folder, share, tmp_path / f"server{server}.dorylus")
        expected = read_all(folder, book, server, ghost_features=ghost_features)
        found = read_all(part, book, server, ghost_features=ghost_features)
        assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))
        for name in share:
            (part.path / name).rename(tmp_path / "away")
            with pytest.raises(FileNotFoundError):
                read_all(part, book, server, ghost_features=ghost_features)
            (tmp_path / "away").rename(part.path / name)

"""A graph folder is built once for each dataset and cut, and again when it is damaged."""

from pathlib import Path

import pytest

from common.errors import DatasetError
from graph_server.graph.cache import cache_key, load_or_build
from graph_server.graph.graph_folder import GraphFolder, write_graph_folder
from tests.graph_server.graph.graphs import graph_of, random_cut

OPTIONS = {"method": "hash", "num_intervals": 2, "cut_seed": 0}


class Builder:
    """Writes a small graph and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, path: Path) -> None:
        self.calls += 1
        graph = graph_of([(0, 1), (1, 2)], 3)
        write_graph_folder(graph, random_cut(graph, 2), path)


def test_the_second_time_nothing_is_built(cache_dir: Path):
    build = Builder()
    paths = [load_or_build("content", OPTIONS, build, cache_dir=cache_dir) for _ in range(2)]
    assert build.calls == 1
    assert paths[0] == paths[1]
    assert GraphFolder.open(paths[0], verify=True).manifest.num_nodes == 3


def test_a_damaged_folder_is_built_again(cache_dir: Path):
    build = Builder()
    path = load_or_build("content", OPTIONS, build, cache_dir=cache_dir)
    (path / "order.npy").unlink()
    assert load_or_build("content", OPTIONS, build, cache_dir=cache_dir) == path
    assert build.calls == 2
    GraphFolder.open(path, verify=True)


def test_the_key_is_content_and_options_whatever_their_order():
    key = cache_key("content", OPTIONS)
    assert key == cache_key("content", dict(reversed(OPTIONS.items())))
    others = [cache_key("other", OPTIONS), cache_key("content", {**OPTIONS, "cut_seed": 1})]
    assert len({key, *others}) == 3


def test_a_builder_that_writes_nothing_is_found_out(cache_dir: Path):
    with pytest.raises(DatasetError, match="is not a graph folder"):
        load_or_build("content", OPTIONS, lambda path: None, cache_dir=cache_dir)

"""A cut within a memory limit is the cut that a training would make, file by file; and the report counts right."""

from pathlib import Path

import numpy as np
import pytest

from cli.spec_flags import flag_layer
from common.errors import DatasetError, SpecError
from graph_server.generate.recipe import Recipe
from graph_server.generate.write import generate
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.partition import Partition, deal_folder
from graph_server.ingest import edge_text
from graph_server.large import sorted_edges
from graph_server.large.shares import shares
from local_cloud.explain import graph_counts
from local_cloud.observer import Silent
from local_cloud.partition import PartitionReport, bytes_of, partition

SERVERS = 3


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "made.parquet"
    sizes = {"num_vertices": 1500, "num_edges": 9000, "num_classes": 3, "num_features": 5, "num_blocks": 10}
    generate(Recipe(kind="blocks", **sizes), path)
    return path


def cut(made: Path, out: Path | None, memory_bytes: int | None = None, **settings: str) -> PartitionReport:
    given = {"cut.num_intervals": "7", "cluster.num_graph_servers": str(SERVERS)}
    flags = flag_layer({**given, **{name.replace("__", "."): value for name, value in settings.items()}})
    return partition(str(made), out, flags, made.parent, memory_bytes=memory_bytes, observer=Silent())


@pytest.mark.parametrize("directed", ["true", "false"])
@pytest.mark.parametrize("method", ["stream", "balanced", "fennel", "range", "hash"])
def test_every_file_of_an_interval_is_the_same(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, directed: str
):
    monkeypatch.setattr(sorted_edges, "ENTRY_BYTES", 500_000)
    monkeypatch.setattr(sorted_edges, "BESIDE_BYTES", 0)
    settings = {"cut__method": method, "dataset__directed": directed}
    here = cut(made, tmp_path / "here.dorylus", **settings)
    there = cut(made, tmp_path / "there.dorylus", 10**9, **settings)
    assert (here.cut_sha256, here.shares, here.payload) == (there.cut_sha256, there.shares, there.payload)
    folders = [GraphFolder.open(tmp_path / f"{name}.dorylus", verify=True) for name in ("here", "there")]
    assert folders[0].manifest.files == folders[1].manifest.files
    assert folders[0].manifest.symmetric == folders[1].manifest.symmetric


@pytest.mark.parametrize("ids", [lambda row: 1000 - row, lambda row: f"v{row}"], ids=["numbers", "texts"])
def test_a_folder_of_texts_is_the_same_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids):
    monkeypatch.setattr(edge_text, "_PIECE_BYTES", 500)
    folder, random = tmp_path / "texts", np.random.default_rng(0)
    folder.mkdir()
    edges = random.integers(0, 200, (900, 2))
    texts = {
        "edges.csv": "source,target\n" + "".join(f"{ids(a)},{ids(b)}\n" for a, b in edges.tolist()),
        "features.csv": "id,f\n" + "".join(f"{ids(row)},{row % 7}\n" for row in range(200)),
        "labels.csv": "id,y\n" + "".join(f"{ids(row)},{row % 3}\n" for row in range(190)),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    for name, limit in (("here", None), ("there", 10**9)):
        cut(folder, tmp_path / f"{name}.dorylus", limit, dataset__directed="false")
    manifests = [GraphFolder.open(tmp_path / f"{name}.dorylus", verify=True).manifest for name in ("here", "there")]
    assert manifests[0].files == manifests[1].files
    (folder / "edges.csv").write_text(texts["edges.csv"] + f"{ids(5)},stranger\n")
    with pytest.raises(DatasetError):
        cut(folder, tmp_path / "no.dorylus", 10**9, dataset__directed="false")


@pytest.mark.parametrize("directed", ["true", "false"])
def test_the_counts_are_those_of_the_graph_servers(made: Path, tmp_path: Path, directed: str):
    report = cut(made, tmp_path / "cut.dorylus", dataset__directed=directed)
    folder = GraphFolder.open(tmp_path / "cut.dorylus")
    book, counted = deal_folder(folder, SERVERS), graph_counts(folder, SERVERS)
    found = shares(folder, book)
    assert report.shares == found
    assert sum(server.ghosts for server in found.servers) == counted.num_ghosts
    assert sum(server.backward_ghosts for server in found.servers) == counted.num_backward_ghosts
    assert found.num_without_loop == counted.num_without_loop
    for number, server in enumerate(found.servers):
        part = Partition.load(folder, book, number)
        assert (server.vertices, server.edges) == (part.num_own, int(part.in_edges.indptr[-1]))
        assert (server.ghosts, server.backward_ghosts) == (part.in_edges.num_ghosts, part.out_edges.num_ghosts)
    crossing = total = 0
    for interval in range(folder.num_intervals):
        owners = book.owner_of(np.asarray(folder.array(interval, "sources")))
        crossing, total = crossing + int((owners != book.owners[interval]).sum()), total + len(owners)
    assert found.cut_between_servers == crossing / total
    assert 0 < found.cut_between_servers <= found.cut_between_intervals < 1


def test_methods_that_look_at_neighbours_cut_less_than_chance(made: Path):
    between = {
        name: cut(made, None, cut__method=name).shares.cut_between_servers for name in ("stream", "fennel", "hash")
    }
    assert between["stream"] < 0.7 * between["hash"]
    assert between["fennel"] < 0.8 * between["hash"]


def test_a_graph_folder_is_told_of_as_it_is_and_nothing_is_left(made: Path, tmp_path: Path):
    folder = tmp_path / "cut.dorylus"
    first = cut(made, folder)
    flags = flag_layer({"cluster.num_graph_servers": str(SERVERS)})
    again = partition(str(folder), None, flags, tmp_path, memory_bytes=None, observer=Silent())
    assert (again.cut_sha256, again.shares) == (first.cut_sha256, first.shares)
    cut(made, None, 10**9)
    assert [path.name for path in tmp_path.iterdir()] == ["cut.dorylus"]
    assert [path.name for path in made.parent.iterdir()] == ["made.parquet"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cut__method": "metis"}, "METIS holds the whole graph"),
        ({"dataset__normalize_features": "standard"}, "normalize_features: standard within --memory-limit"),
        ({"dataset__features": "degree"}, "features: degree or one_hot within --memory-limit"),
    ],
)
def test_what_needs_the_whole_graph_is_refused(made: Path, tmp_path: Path, settings: dict[str, str], words: str):
    with pytest.raises(DatasetError) as error:
        cut(made, tmp_path / "cut.dorylus", 10**9, **settings)
    assert words in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_folder_of_tables_is_refused_within_a_limit(tmp_path: Path):
    flags = flag_layer({})
    with pytest.raises(DatasetError, match=r"cora\.npz \(gnn_benchmark\) cannot be read within --memory-limit"):
        partition("cora", None, flags, tmp_path, memory_bytes=10**9, observer=Silent())


def test_names_and_sizes(made: Path, tmp_path: Path):
    with pytest.raises(SpecError, match="is not the name of a graph folder"):
        cut(made, tmp_path / "cut.parquet")
    (tmp_path / "cut.dorylus").mkdir()
    with pytest.raises(DatasetError, match="is there already"):
        cut(made, tmp_path / "cut.dorylus")
    assert [bytes_of(text) for text in ("2GB", "500 mb", "1.5G", "4096")] == [2 * 10**9, 5 * 10**8, 15 * 10**8, 4096]
    for text in ("much", "-1", "0", "2XB"):
        with pytest.raises(SpecError):
            bytes_of(text)

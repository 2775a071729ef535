"""`dataset.edge_weight` in every format that has weights: the same graph, the same weights; and what is refused."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import dgl_csv, dgl_reddit, gnn_benchmark, graphbolt, graphsaint, ogb
from graph_server.graph.csr import EdgeList
from graph_server.graph.cut import make_cut
from graph_server.graph.graph_folder import write_graph_folder
from graph_server.ingest.detect import find_format
from graph_server.ingest.edge_text import read_edges
from graph_server.ingest.raw_graph import RawGraph
from graph_server.ingest.write_parquet import write_parquet
from tests.conformance.examples.graphdata import example as graphdata_example
from tests.graph_server.datasets.folders import load, write_folder

EDGES = [(0, 1, 0.5), (1, 2, 2.0), (2, 3, 0.0), (3, 0, 1.25)]
SOURCES, TARGETS, WEIGHTS = (np.array(column) for column in zip(*EDGES, strict=True))
LINES = "".join(f"{source},{target},{weight}\n" for source, target, weight in EDGES)


def read(path: Path, weight: str | None, **options: object) -> RawGraph:
    given = DatasetSpec(path=str(path), edge_weight=weight, **options)
    return find_format(given, path)[1].read(path, given)


def edges_of(raw: RawGraph) -> list[tuple[int, int, float]]:
    assert raw.weights is not None
    ids = raw.node_ids - raw.node_ids.min()
    return list(zip(ids[raw.sources].tolist(), ids[raw.targets].tolist(), raw.weights.values.tolist(), strict=True))


def text(header: str, separator: str = ",", line: str = "{}\n") -> Callable[[Path], Path]:
    lines = [separator.join(map(str, edge)) for edge in EDGES]
    return lambda folder: write_folder(folder, edges_csv=header + "".join(line.format(edge) for edge in lines))


def matrix_market(folder: Path) -> Path:
    lines = "".join(f"{source + 1} {target + 1} {weight}\n" for source, target, weight in EDGES)
    (folder / "ring.mtx").write_text(f"%%MatrixMarket matrix coordinate real general\n4 4 4\n{lines}")
    return folder / "ring.mtx"


def parquet(folder: Path) -> Path:
    table = {"source": SOURCES, "note": ["a"] * 4, "w": WEIGHTS, "target": TARGETS}
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "edges.parquet")
    return folder / "edges.parquet"


def of_dgl(folder: Path) -> Path:
    path = dgl_csv.example(folder)
    lines = "".join(f"{source + 10},{target + 10},{weight}\n" for source, target, weight in EDGES)
    (path / "edges.csv").write_text(f"src_id,dst_id,w\n{lines}")
    return path


def of_graphbolt(folder: Path) -> Path:
    path = graphbolt.example(folder)
    np.save(folder / "data" / "w.npy", WEIGHTS[:, None])
    meta = (folder / graphbolt.META).read_text()
    more = "feature_data: [{domain: edge, name: w, format: numpy, path: data/w.npy}, "
    (folder / graphbolt.META).write_text(meta.replace("feature_data: [", more))
    return path


def arrays(folder: Path) -> Path:
    np.savez(folder / "ring.npz", edge_index=np.stack([SOURCES, TARGETS]), x=np.eye(4), y=np.arange(4) % 2, w=WEIGHTS)
    return folder / "ring.npz"


def array_files(folder: Path) -> Path:
    for name, array in {"edge_index": np.stack([SOURCES, TARGETS]), "x": np.eye(4), "w": WEIGHTS}.items():
        np.save(folder / f"{name}.npy", array)
    return folder


def matrix() -> scipy.sparse.csr_matrix:
    return scipy.sparse.csr_matrix((WEIGHTS, TARGETS, np.arange(5)), shape=(4, 4))


def saved_matrix(folder: Path) -> Path:
    scipy.sparse.save_npz(folder / "ring.npz", matrix())
    return folder / "ring.npz"


def of_ogb(folder: Path) -> Path:
    path = ogb.example(folder)
    lines = "".join(f"{weight}\n" for weight in WEIGHTS)
    (path / "raw" / "edge-feat.csv.gz").write_bytes(gzip.compress(lines.encode()))
    return path


def of_ogb_with_three(folder: Path) -> Path:
    path = ogb.example(folder)
    lines = "".join(f"7,8,{weight}\n" for weight in WEIGHTS)
    (path / "raw" / "edge-feat.csv.gz").write_bytes(gzip.compress(lines.encode()))
    return path


def of_gnn_benchmark(folder: Path) -> Path:
    path = gnn_benchmark.example(folder)
    with np.load(path) as file:
        np.savez(path, **{**file, "adj_data": WEIGHTS})
    return path


def of_reddit(folder: Path) -> Path:
    path = dgl_reddit.example(folder)
    with np.load(path / "reddit_graph.npz") as file:
        np.savez(path / "reddit_graph.npz", **{**file, "data": WEIGHTS})
    return path


def of_graphsaint(folder: Path) -> Path:
    path = graphsaint.example(folder)
    scipy.sparse.save_npz(path / "adj_full.npz", matrix())
    return path


FORMATS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "csv": (text("source,target,w\n"), "w"),
    "csv by number": (text("source,target,w\n"), "3"),
    "no header": (text("", "\t"), "3"),
    "comments": (text("# a comment\n", " "), "3"),
    "careful": (text('"source","target","w"\n', line="{} \n\n"), "w"),
    "matrix_market": (matrix_market, "value"),
    "parquet": (parquet, "w"),
    "dgl_csv": (of_dgl, "w"),
    "graphbolt": (of_graphbolt, "w"),
    "arrays": (arrays, "w"),
    "array files": (array_files, "w"),
    "saved matrix": (saved_matrix, "data"),
    "ogb": (of_ogb, "edge_feat"),
    "ogb, three": (of_ogb_with_three, "edge_feat:3"),
    "gnn_benchmark": (of_gnn_benchmark, "data"),
    "dgl_reddit": (of_reddit, "data"),
    "graphsaint": (of_graphsaint, "data"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_weights_of_every_format(tmp_path: Path, name: str):
    write, weight = FORMATS[name]
    path = write(tmp_path)
    raw = read(path, weight)
    assert edges_of(raw) == EDGES
    assert not any("weight" in note for note in raw.notes), "nothing says that they are not used"
    assert read(path, None).weights is None


@pytest.mark.parametrize("name", FORMATS)
def test_a_name_that_is_not_there_is_refused(tmp_path: Path, name: str):
    write, weight = FORMATS[name]
    with pytest.raises(DatasetError, match="dataset.edge_weight: nowhere, and ") as caught:
        read(write(tmp_path), "nowhere")
    assert weight in caught.value.why + caught.value.fix or weight == "3"


@pytest.mark.parametrize("weight", ["source", "1", "4", "0", "W"])
def test_ends_and_what_is_beyond_are_no_weights(tmp_path: Path, weight: str):
    with pytest.raises(DatasetError) as caught:
        read(text("source,target,w\n")(tmp_path), weight)
    assert caught.value.fix == "write dataset.edge_weight: w"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1,2,nan", "edges.csv: line 3: 1 of 4 edges have a weight that is missing or no finite float32: nan"),
        ("1,2,inf", "no finite float32: inf"),
        ("1,2,1e50", "no finite float32: 1e+50"),
        ("1,2,heavy", ":3: '1,2,heavy' has the weight 'heavy', which is no number"),
        ("1,2,", ":3: '1,2,' has the weight '', which is no number"),
        ("1,2", ":3: '1,2' has 2 fields, not 3"),
    ],
)
def test_a_weight_that_is_none_is_named_by_its_line(tmp_path: Path, line: str, says: str):
    lines = LINES.splitlines()
    lines[1] = line
    folder = write_folder(tmp_path, edges_csv="\n".join(["source,target,w", *lines]) + "\n")
    with pytest.raises(DatasetError) as caught:
        read(folder, "w")
    assert says in caught.value.what


def test_an_empty_cell_of_a_table_is_named_by_its_row(tmp_path: Path):
    table = pyarrow.table({"source": SOURCES, "target": TARGETS, "w": [1.0, None, 2.0, None]})
    pyarrow.parquet.write_table(table, tmp_path / "edges.parquet")
    with pytest.raises(DatasetError, match="row 1, 3: 2 of 4 edges have a weight that is missing"):
        read(tmp_path / "edges.parquet", "w")


def test_weights_of_dropped_edges_go_with_them(tmp_path: Path):
    folder = write_folder(tmp_path, edges_csv="0,9,nan\n" + LINES)
    raw = read(folder, "3", drop_unknown_edges=True)
    assert edges_of(raw) == EDGES


def test_parts_are_joined_in_order(tmp_path: Path):
    folder = write_folder(tmp_path, edges_csv=None)
    (folder / "edges").mkdir()
    for number, lines in enumerate((LINES[: len("0,1,0.5\n")], LINES[len("0,1,0.5\n") :])):
        (folder / "edges" / f"part-{number}.csv").write_text(lines)
    assert edges_of(read(folder, "3")) == EDGES


def test_all_three_readers_of_a_text_find_the_same(tmp_path: Path):
    edges = np.random.default_rng(0).integers(0, 50, (200, 3))
    rows = [",".join(map(str, edge)) for edge in edges]
    for name, lines in {"table": rows, "plain": [" " + row for row in rows], "careful": ['"0","0","1"', *rows]}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        found = read_edges(tmp_path / f"{name}.csv", weight="3")
        assert found.weights is not None
        assert found.weights[-200:].tolist() == edges[:, 2].tolist(), name


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("real skew-symmetric", "opposite of its reverse"),
        ("pattern general", "nothing else"),
        ("complex general", "nothing else"),
    ],
)
def test_matrices_whose_entries_are_no_weights(tmp_path: Path, kind: str, why: str):
    values = {"real": " 1.5", "pattern": "", "complex": " 1 2"}[kind.split()[0]]
    (tmp_path / "m.mtx").write_text(f"%%MatrixMarket matrix coordinate {kind}\n3 3 1\n2 1{values}\n")
    with pytest.raises(DatasetError) as caught:
        read(tmp_path / "m.mtx", "value")
    assert why in caught.value.why


def test_a_symmetric_matrix_weighs_the_same_both_ways(tmp_path: Path):
    (tmp_path / "m.mtx").write_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 1.5\n3 3 4\n")
    raw = read(tmp_path / "m.mtx", "value")
    assert raw.undirected
    assert edges_of(raw) == [(1, 0, 1.5), (2, 2, 4)]


def test_through_a_graph_folder_and_back(tmp_path: Path):
    dataset = load(text("source,target,w\n")(tmp_path / "text"), edge_weight="w", directed=True)
    cut = make_cut(EdgeList(dataset.sources, dataset.targets, 4), 3, method="hash", seed=1)
    write_graph_folder(dataset, cut, tmp_path / "ring.dorylus")
    for weight in (None, "weights"):
        assert sorted(edges_of(read(tmp_path / "ring.dorylus", weight))) == sorted(EDGES)
    with pytest.raises(DatasetError, match="edge_weight: w, and "):
        read(tmp_path / "ring.dorylus", "w")


def test_through_parquet_and_back(tmp_path: Path):
    write_parquet(read(text("source,target,w\n")(tmp_path / "text"), "w"), tmp_path / "ring.parquet")
    assert edges_of(read(tmp_path / "ring.parquet", "weight")) == EDGES
    assert read(tmp_path / "ring.parquet", None).weights is None


def test_what_no_format_can_give_is_refused(tmp_path: Path):
    folder = write_folder(tmp_path, edges_npy=np.stack([SOURCES, TARGETS, SOURCES], axis=1)[:, :2])
    with pytest.raises(DatasetError, match=r"edge_weight: w, and .*edges.npy has no such weights"):
        read(folder, "w")
    with pytest.raises(
        DatasetError, match="edge_weight: w, but gnn_benchmark|edge_weight: w, and cora|edge_weight: w, "
    ):
        load("cora", edge_weight="w")


def test_entries_of_a_pickled_matrix_are_weights_too(tmp_path: Path):
    path = graphdata_example(tmp_path)
    raw = read(path, "data", allow_pickle=True)
    assert raw.weights is not None
    assert raw.weights.values.tolist() == [1.0] * raw.num_edges
    with pytest.raises(DatasetError, match="edge_weight: w, and .* has no such weights"):
        read(path, "w", allow_pickle=True)

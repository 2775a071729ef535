"""Every file of the real data: what it holds, or by which words it is refused.

V vertices, E edges as stored, F features, C classes; the numbers are those that come with the data.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.ingest.detect import find_format
from graph_server.ingest.label_policies import apply_label_policies
from graph_server.ingest.raw_graph import RawGraph


class Holds(NamedTuple):
    format: str
    num_nodes: int
    num_edges: int
    num_features: int | None = None
    num_classes: int | None = None
    masks: tuple[int, int, int] | None = None


TABLE = {
    "planetoid_cora": Holds("planetoid", 2708, 10_858, 1433, 7, (140, 500, 1000)),
    "planetoid_citeseer": Holds("planetoid", 3327, 9_464, 3703, 6, (120, 500, 1000)),
    "planetoid_pubmed": Holds("planetoid", 19_717, 88_676, 500, 3, (60, 500, 1000)),
    "linqs_cora": Holds("linqs", 2708, 5_429, 1433, 7),
    "gnnbench_npz/cora.npz": Holds("gnn_benchmark", 2708, 5_429, 1433, 7),
    "gnnbench_npz/citeseer.npz": Holds("gnn_benchmark", 3312, 4_715, 3703, 6),
    "graphdata_npz/amazon_photo.npz": Holds("graphdata", 7650, 143_663, 745, 8),
    "graphdata_npz/polblogs.npz": Holds("graphdata", 1490, 19_025, None, 2),
    "graphdata_npz/karate_club.npz": Holds("graphdata", 34, 156, None, 4),
    "heterophilous_npz/minesweeper.npz": Holds("heterophilous", 10_000, 39_402, 7, 2, (5000, 2500, 2500)),
    "heterophilous_npz/texas.npz": Holds("heterophilous", 183, 279, 1703, 5, (87, 59, 37)),
    "heterophilous_npz/wisconsin.npz": Holds("heterophilous", 251, 450, 1703, 5, (120, 80, 51)),
    "geom_gcn/texas": Holds("geom_gcn", 183, 325, 1703, 5, (87, 59, 37)),
    "snap_edgelists/facebook_combined.txt.gz": Holds("edge_list", 4039, 88_234),
    "snap_edgelists/as20graph.txt": Holds("edge_list", 6474, 26_467),
    "snap_edgelists/karate.edgelist": Holds("edge_list", 34, 78),
    "graphsaint_ogbn_arxiv": Holds("graphsaint", 169_343, 1_166_243, None, 40, (90_941, 29_799, 48_603)),
    "dgl_csv/author_data": Holds("dgl_csv", 333, 2_519, 224),
    "parquet_neo4j/cora": Holds("parquet", 2708, 5_429, 1433, 7),
    "parquet_neo4j/karate": Holds("parquet", 34, 78),
    "parquet_neo4j/karate/karate_club.parquet.gzip": Holds("parquet", 34, 78),
    "matrixmarket/cugraph/karate.mtx": Holds("matrix_market", 34, 78),
    "matrixmarket/cugraph/dolphins.mtx": Holds("matrix_market", 62, 159),
    "matrixmarket/cugraph/polbooks.mtx": Holds("matrix_market", 105, 441),
    "matrixmarket/cugraph/netscience.mtx": Holds("matrix_market", 1589, 2_742),
    "matrixmarket/cugraph/karate_str.mtx": Holds("edge_list", 34, 78),
    "matrixmarket/lagraph/karate.mtx": Holds("matrix_market", 34, 78),
    "matrixmarket/lagraph/jagmesh7.mtx": Holds("matrix_market", 1138, 4_294),
    "matrixmarket/lagraph/west0067.mtx": Holds("matrix_market", 67, 294),
    "matrixmarket/lagraph/west0067_jumbled.mtx": Holds("matrix_market", 67, 294),
    "matrixmarket/lagraph/skew_fp64.mtx": Holds("matrix_market", 6, 10),
    "matrixmarket/lagraph/mangled_skew.mtx": Holds("matrix_market", 6, 10),
    **{
        f"matrixmarket/lagraph/{name}.mtx": Holds("matrix_market", 7, 12)
        for name in (
            *(f"mangled_{kind}" for kind in ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32")),
            *(f"matrix_{kind}" for kind in ("bool", "fp32", "fp64", "int8", "int16", "int32", "int64", "uint8")),
            *(f"matrix_{kind}" for kind in ("uint16", "uint32", "uint64", "fp32_structure")),
            "structure",
        )
    },
}
"""Whose values do not fit their type (`mangled_int8` and others) are read: values are not used."""

REFUSED = {
    "ogb/ogbg_molesol": r"holds 1128 graphs, each with a label of its own \(a graph-level dataset\)",
    "ogb/ogbn_arxiv_partial": r"lacks raw/edge\.csv\.gz, raw/node-feat\.csv\.gz, split/",
    "dgl_csv/plan_graphs": r"holds 200 graphs",
    "matrixmarket/cugraph/karate_mod.mtx": r"karate_mod\.mtx:79: '35' has 1 fields, not 2",
    "matrixmarket/lagraph/west0067_noheader.mtx": r":1: '67 67 294' is followed by exactly 294 lines",
    "matrixmarket/lagraph/full_noheader.mtx": r":2: '\.646' has 1 fields, not 2",
    "matrixmarket/lagraph/empty.mtx": "the matrix has 3 rows and 4 columns",
    **{
        f"matrixmarket/lagraph/{name}.mtx": r"is a dense matrix \('array'\)"
        for name in ("complex", "full", "full_symmetric", "mangled15", "mangled16", "mangled_format")
    },
    **{
        f"matrixmarket/lagraph/mangled{number}.mtx": "the matrix has 3 rows and 4 columns"
        for number in (9, 10, 11, 12, 13, 14)
    },
    **{f"matrixmarket/lagraph/mangled{number}.mtx": "has the unknown word 'mangled'" for number in (1, 2, 3, 4)},
    "matrixmarket/lagraph/mangled5.mtx": "is hermitian and pattern",
    "matrixmarket/lagraph/mangled6.mtx": "is hermitian and real",
    "matrixmarket/lagraph/mangled7.mtx": r":5: '1 1' has 2 fields, not 3",
    "matrixmarket/lagraph/mangled8.mtx": r":4: '3' is not the line of sizes",
}

BESIDE = {"README.md", "cora_public_split_linqs_ids.json", "geom_gcn/splits"}
"""No datasets of their own."""


def read(path: Path) -> RawGraph:
    options = DatasetSpec(path=str(path), allow_pickle=True)
    return find_format(options, path)[1].read(path, options)


@pytest.mark.parametrize("name", TABLE)
def test_what_it_holds(real_data: Path, name: str):
    raw, expected = read(real_data / name), TABLE[name]
    assert (raw.format, raw.num_nodes, raw.num_edges) == expected[:3]
    assert (None if raw.features is None else raw.features.shape[1]) == expected.num_features
    classes = None if raw.labels is None else len(apply_label_policies(raw, DatasetSpec(path=name)).values)
    assert classes == expected.num_classes
    masks = None if raw.masks is None else tuple(int(mask.sum()) for mask in raw.masks.values())
    assert masks == expected.masks
    assert raw.features is not None or raw.why_no_features
    assert raw.labels is not None or raw.why_no_labels


@pytest.mark.parametrize("name", REFUSED)
def test_by_which_words_it_is_refused(real_data: Path, name: str):
    with pytest.raises(DatasetError, match=REFUSED[name]) as error:
        read(real_data / name)
    assert error.value.why
    assert error.value.fix


def test_every_file_is_in_one_of_the_tables(real_data: Path):
    listed = {*TABLE, *REFUSED, *BESIDE}
    files = [file.relative_to(real_data) for file in real_data.rglob("*") if file.is_file()]
    assert not [str(file) for file in files if not listed & {str(file), *(str(parent) for parent in file.parents)}]


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("planetoid_cora", 5278),
        ("planetoid_citeseer", 4552),
        ("planetoid_pubmed", 44_324),
        ("linqs_cora", 5278),
        ("gnnbench_npz/citeseer.npz", 4536),
        ("graphdata_npz/amazon_photo.npz", 119_081),
        ("geom_gcn/texas", 279),
        ("snap_edgelists/facebook_combined.txt.gz", 88_234),
        ("snap_edgelists/as20graph.txt", 12_572),
        ("snap_edgelists/karate.edgelist", 77),
        ("parquet_neo4j/cora", 5278),
    ],
)
def test_how_many_pairs_its_edges_join(real_data: Path, name: str, pairs: int):
    raw = read(real_data / name)
    ends = np.sort(np.stack([raw.sources, raw.targets]), axis=0)
    between = ends[:, ends[0] != ends[1]]
    assert len(np.unique(between[0] * raw.num_nodes + between[1])) == pairs

"""DGL CSVDataset folders."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import dgl_csv
from tests.graph_server.datasets.folders import load

SEVERAL = """
dataset_name: papers
separator: ';'
edge_data:
- {file_name: writes.csv, etype: [author, writes, paper]}
- {file_name: cites.csv, etype: [paper, cites, paper], src_id_field: from_id, dst_id_field: to_id}
node_data:
- {file_name: authors.csv, ntype: author}
- {file_name: papers.csv, ntype: paper, node_id_field: pid}
"""


def read(folder: Path, **options):
    return dgl_csv.read(folder, DatasetSpec(path=str(folder), **options))


def write(folder: Path, **files: str) -> Path:
    dgl_csv.example(folder)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    return folder


def test_vertices_keep_the_order_of_their_file(tmp_path: Path):
    nodes = 'node_id,label,feat\n30,x,"1, 2"\n7,y,"3, 4.5"\n'
    raw = read(write(tmp_path, nodes_csv=nodes, edges_csv="src_id,dst_id,weight\n7,30,0.5\n"))
    assert raw.node_ids.tolist() == [30, 7]
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([1], [0])
    assert raw.features.tolist() == [[1, 2], [3, 4.5]]
    assert raw.labels.tolist() == ["x", "y"]
    assert raw.notes == ("edges.csv: column weight ignored; dataset.edge_weight names a column of weights",)


def test_masks_are_true_and_false(tmp_path: Path):
    dataset = load(dgl_csv.example(tmp_path), directed=True)
    assert dataset.masks.tolist() == [1, 1, 2, 4]
    assert dataset.node_ids.tolist() == [10, 11, 12, 13]


def test_text_ids(tmp_path: Path):
    folder = write(tmp_path, nodes_csv='node_id,feat\na,"1"\nb,"2"\n', edges_csv="src_id,dst_id\na,b\n")
    assert read(folder).targets.tolist() == [1]


def test_a_homogeneous_part_is_picked(tmp_path: Path):
    files = {
        "meta.yaml": SEVERAL,
        "writes.csv": "src_id;dst_id\n1;5\n",
        "cites.csv": "from_id;to_id\n5;6\n",
        "authors.csv": "node_id\n1\n",
        "papers.csv": 'pid;label;feat\n5;0;"1,2"\n6;1;"3,4"\n',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    raw = read(tmp_path)
    assert (raw.edge_type, raw.node_type, raw.node_ids.tolist()) == ("paper:cites:paper", "paper", [5, 6])
    assert load(tmp_path, directed=True, node_type="paper").num_edges == 1
    with pytest.raises(DatasetError, match="holds 2 kinds of edges: .*; asked for edge_type: writes"):
        read(tmp_path, edge_type="writes")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"edges_csv": "src_id,dst_id\n10,99\n"}, r"edges\.csv names 1 times a vertex that does not exist: line 2: 99"),
        ({"edges_csv": "src_id,dst_id\n10,\n"}, "dst_id is empty"),
        ({"edges_csv": "from,to\n10,11\n"}, r"edges\.csv has no column src_id, dst_id; it has from, to"),
        ({"nodes_csv": 'node_id,feat\n10,"1"\n10,"2"\n'}, r"nodes\.csv:3: vertex 10 stands on line 2 already"),
        ({"nodes_csv": 'node_id,feat\n10,"1,x"\n'}, r"nodes\.csv:2: 'x' is not a number"),
        ({"nodes_csv": 'node_id,feat\n10,"1,2"\n11,"1"\n'}, "row 1: feat holds 1 numbers, the rows above 2"),
        ({"nodes_csv": "node_id,feat,feat\n1,2,3\n"}, "several columns are named feat"),
        ({"nodes_csv": "graph_id,node_id\n0,1\n1,1\n"}, r"holds 2 graphs \(column graph_id of nodes\.csv\)"),
        ({"meta_yaml": "edge_data: []\nnode_data: []\n"}, "holds 0 kinds of edges"),
        (
            {"meta_yaml": "edge_data: [{file_name: ../e.csv}]\nnode_data: [{file_name: n.csv}]\n"},
            r"meta\.yaml names \.\./e\.csv, which lies outside",
        ),
        ({"meta_yaml": "edge_data: 3\nnode_data: []\n"}, r"meta\.yaml cannot be read: Expected"),
        ({"meta_yaml": "edge_data: [{file_name: e.csv}]\nnode_data: [{file_name: n.csv}]\n"}, r"lacks e\.csv"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, files: dict, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write(tmp_path, **files))


def test_real_folders(real_data: Path):
    folder = real_data / "dgl_csv"
    raw = read(folder / "author_data")
    assert (raw.num_nodes, raw.num_edges, raw.features.shape) == (333, 2519, (333, 224))
    assert np.flatnonzero(raw.features[0])[:3].tolist() == [7, 14, 50]
    with pytest.raises(DatasetError, match="has no labels for its 333 vertices") as error:
        load(folder / "author_data")
    assert error.value.why == "nodes.csv has no column label"
    with pytest.raises(DatasetError, match="holds 200 graphs"):
        load(folder / "plan_graphs")

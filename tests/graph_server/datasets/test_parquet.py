"""Parquet tables: roles by the names of columns, parts in natural order, one kind out of several."""

from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import parquet
from tests.graph_server.datasets.folders import load

EDGES = {"source": [0, 1, 2, 3], "target": [1, 2, 3, 0]}
NODES = {"id": [0, 1, 2, 3], "f": [1.0, 2.0, 3.0, 4.0], "label": [0, 1, 0, 1]}


def read(path: Path, **options):
    return parquet.read(path, DatasetSpec(path=str(path), **options))


def write(folder: Path, *, edges: dict | None = None, nodes: dict | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    save(folder / "edges.parquet", edges or EDGES)
    if nodes is not None:
        save(folder / "nodes.parquet", nodes)
    return folder


def save(file: Path, columns: dict, **options: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), file, **options)


def test_vertices_and_edges(tmp_path: Path):
    raw = read(parquet.example(tmp_path))
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 0])
    assert raw.features.tolist() == [[1, 0], [0, 1], [1, 1], [2, 0]]
    assert raw.labels.tolist() == ["a", "b", "a", "b"]
    assert raw.masks["train"].tolist() == [True, True, False, False]


def test_scalar_columns_are_features_in_order(tmp_path: Path):
    nodes = NODES | {"year": [1, 2, 3, None], "is_big": [True, False, True, False], "name": ["w", "x", "y", "z"]}
    raw = read(write(tmp_path, nodes=nodes))
    assert raw.features.tolist()[:2] == [[1, 1, 1], [2, 2, 0]]
    assert np.isnan(raw.features[3, 1])
    assert raw.notes == (
        "nodes.parquet: columns not used: name",
        "nodes.parquet: features are the columns f, year, is_big",
    )


@pytest.mark.parametrize(
    ("ids", "edges"),
    [
        (["a", "b", "c", "d"], {"src": ["b", "a"], "dst": ["c", "d"]}),
        ([900, 7, 8, 30], {"u": [7, 900], "v": [8, 30]}),
        ([900.0, 7.0, 8.0, 30.0], {"sourceNodeId": [7, 900], "targetNodeId": [8.0, 30.0]}),
        (pyarrow.array(["a", "b", "c", "d"]).dictionary_encode(), {"from": ["b", "a"], "to": ["c", "d"]}),
    ],
)
def test_ids_of_any_kind(tmp_path: Path, ids: object, edges: dict):
    raw = read(write(tmp_path, edges=edges, nodes=NODES | {"id": ids}))
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([1, 0], [2, 3])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, None, 1, 1], [0, -1, 1, 1]),
        (["x", None, "y", ""], [0, -1, 1, -1]),
        ([[1, 0], [0, 1], [0, 0], [1, 0]], [0, 1, -1, 0]),
        ([True, False, True, None], [1, 0, 1, -1]),
    ],
)
def test_labels_in_any_dress(tmp_path: Path, labels: list, expected: list):
    folder = write(tmp_path, nodes=NODES | {"label": labels, "train_mask": [True, False, False, False]})
    assert load(folder, directed=True).labels.tolist() == expected


def test_parts_are_read_in_natural_order(tmp_path: Path):
    for number in (10, 2, 1):
        save(
            tmp_path / "nodes" / f"part-{number}.snappy.parquet",
            {"x": [float(number)], "y": [number % 2]},
            compression="snappy",
        )
    save(tmp_path / "edges" / "day=3" / "part-0.zstd.parquet", {"src": [0, 1], "dst": [1, 2]}, compression="zstd")
    (tmp_path / "edges" / "_SUCCESS").write_text("")
    raw = read(tmp_path)
    assert raw.features.reshape(-1).tolist() == [1, 2, 10]
    assert raw.node_ids.tolist() == [0, 1, 2]


def test_one_file_of_edges_names_its_vertices(tmp_path: Path):
    folder = write(tmp_path, edges={"source": [5, 9], "target": [9, 5], "weight": [0.5, 1.0]})
    raw = read(folder / "edges.parquet")
    assert raw.node_ids.tolist() == [5, 9]
    assert raw.notes == ("edges.parquet: column weight ignored; dataset.edge_weight names a column of weights",)
    with pytest.raises(DatasetError, match="has no labels for its 2 vertices") as error:
        load(folder)
    assert "holds edges alone" in error.value.why


def test_a_homogeneous_part_is_picked(tmp_path: Path):
    edges = EDGES | {"relationshipType": ["CITES", "CITES", "WRITES", None]}
    nodes = NODES | {"labels": ["Paper", "Paper", "Paper", "Author"]}
    folder = write(tmp_path, edges=edges, nodes=nodes)
    raw = read(folder, edge_type="CITES", node_type="Paper")
    assert (raw.num_nodes, raw.sources.tolist(), raw.targets.tolist()) == (3, [0, 1], [1, 2])
    assert (raw.edge_type, raw.node_type) == ("CITES", "Paper")
    with pytest.raises(DatasetError, match="holds 2 kinds: Author, Paper") as error:
        read(folder)
    assert error.value.fix == "set dataset.node_type: Author or Paper"
    with pytest.raises(DatasetError, match="holds 3 kinds: CITES, None, WRITES; asked for LIKES"):
        read(folder, node_type="Paper", edge_type="LIKES")


@pytest.mark.parametrize(
    ("edges", "nodes", "reason"),
    [
        (
            {"source": [0, 9], "target": [1, 8]},
            NODES,
            r"names 2 times a vertex that does not exist: row 1: 9; row 1: 8",
        ),
        ({"source": [0, None], "target": [1, 2]}, NODES, r"edges\.parquet: row 1: source is empty \(1 of 2 rows\)"),
        ({"source": [0.5], "target": [1.0]}, NODES, "0.5 at position 0 is no exact vertex id"),
        ({"source": [[0]], "target": [[1]]}, NODES, "source has type list"),
        (EDGES, NODES | {"id": [0, 1, 1, 2]}, "row 2: vertex 1 stands on row 1 already"),
        (EDGES, NODES | {"x": [[1.0], [1.0, 2.0], [1.0], [1.0]]}, "row 1: x holds 2 numbers, the rows above 1"),
        (EDGES, NODES | {"x": [["a"], ["b"], ["c"], ["d"]]}, "x has type list<"),
        (EDGES, NODES | {"split": ["train", "tset", "", None]}, "row 1: tset is no split"),
        (EDGES, NODES | {"split": ["train"] * 4, "val_mask": [True] * 4}, "has the column split and val_mask"),
        ({"a": [0], "b": [1]}, None, "holds no table of edges: edges.parquet"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, edges: dict, nodes: dict | None, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write(tmp_path, edges=edges, nodes=nodes))


def test_a_truncated_file_is_refused(tmp_path: Path):
    folder = write(tmp_path, nodes=NODES)
    file = folder / "nodes.parquet"
    file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(DatasetError, match=r"nodes\.parquet cannot be read"):
        read(folder)


def test_cora_is_what_the_other_formats_say(real_data: Path):
    dataset, bundled = load(real_data / "parquet_neo4j" / "cora", directed=False), load("cora")
    assert (dataset.num_nodes, dataset.report["edges_raw"], dataset.num_edges) == (2708, 5429, 2 * 5278)
    assert np.array_equal(dataset.features > 0, bundled.features > 0)
    assert np.array_equal(dataset.labels, bundled.labels)
    assert np.array_equal(dataset.node_ids, bundled.node_ids)


@pytest.mark.parametrize("nodes", [None, NODES | {"id": [-900, 7, 8, 30]}])
def test_negative_ids_are_for_who_asks(tmp_path: Path, nodes: dict | None):
    write(tmp_path, edges={"src": [7, -900], "dst": [8, 30]}, nodes=nodes or NODES)
    path = tmp_path if nodes else tmp_path / "edges.parquet"
    with pytest.raises(DatasetError, match=r"row [01]: the id -900 is negative"):
        read(path)
    raw = parquet.read(path, DatasetSpec(path=str(path), negative_ids=True))
    assert raw.node_ids[raw.sources].tolist() == [7, -900]

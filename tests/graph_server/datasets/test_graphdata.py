"""Archives of pickled matrices: by opt-in only, and never run."""

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import gnn_benchmark, graphdata
from tests.graph_server.datasets.folders import load, write_graphdata, write_npz


def read(file: Path, **options):
    return graphdata.read(file, DatasetSpec(path=str(file), **({"allow_pickle": True} | options)))


def test_without_the_option_the_error_names_it(tmp_path: Path):
    with pytest.raises(DatasetError, match="holds pickled objects: adj_matrix, node_attr") as error:
        load(write_graphdata(tmp_path / "ring.npz"))
    assert error.value.fix == "set dataset.allow_pickle: true"


def test_the_matrices_are_read(tmp_path: Path):
    raw = read(write_graphdata(tmp_path / "ring.npz"))
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 0])
    assert raw.features.toarray().tolist() == [[1, 0], [0, 1], [1, 1], [2, 0]]
    assert raw.labels.tolist() == [0, 1, 0, 1]
    assert load(tmp_path / "ring.npz", allow_pickle=True, directed=True).num_classes == 2


class Runs:
    """A pickle that makes a folder when it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("name", ["adj_matrix", "node_attr"])
def test_a_command_is_refused_by_name_and_not_run(tmp_path: Path, name: str):
    file = write_graphdata(tmp_path / "ring.npz", **{name: Runs(tmp_path / "ran")})
    with pytest.raises(DatasetError, match=r"names (posix|nt)\.mkdir, which is refused"):
        read(file)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"adj_matrix": scipy.sparse.csr_matrix((4, 3))}, r"no square sparse matrix: \(4, 3\)"),
        ({"adj_matrix": np.eye(4)}, r"no square sparse matrix: \(4, 4\)"),
        ({"node_attr": [1, 2]}, "node_attr is list; the graph has 4 vertices"),
        ({"node_label": np.zeros(3)}, r"node_label is \(3,\); the graph has 4 vertices"),
        ({"node_attr": scipy.sparse.coo_matrix((4, 2))}, r"names scipy\.sparse\._coo\.coo_matrix, which is refused"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, changes: dict, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write_graphdata(tmp_path / "ring.npz", **changes))


def test_a_matrix_that_lies_about_itself_is_refused(tmp_path: Path):
    liar = scipy.sparse.csr_matrix((np.ones(2), ([0, 1], [1, 0])), shape=(2, 2))
    liar.indices[0] = 1_000_000
    with pytest.raises(DatasetError, match="cannot be read"):
        read(write_graphdata(tmp_path / "ring.npz", adj_matrix=liar))


def test_names_that_are_objects_are_read_by_opt_in(tmp_path: Path):
    file = write_npz(tmp_path / "path.npz", node_names=np.array(["a", "b", "c"], dtype=object))
    quiet, asked = (
        gnn_benchmark.read(file, DatasetSpec(path=str(file), allow_pickle=allowed)) for allowed in (False, True)
    )
    assert quiet.node_ids.tolist() == [0, 1, 2]
    assert asked.node_ids.tolist() == ["a", "b", "c"]
    assert asked.notes == ()


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "undirected", "width", "classes"),
    [
        ("amazon_photo", 7650, 143_663, 119_081, 745, 8),
        ("polblogs", 1490, 19_025, 16_715, None, 2),
        ("karate_club", 34, 156, 78, None, 4),
    ],
)
def test_real_archives(
    real_data: Path, name: str, nodes: int, edges: int, undirected: int, width: int | None, classes: int
):
    file = real_data / "graphdata_npz" / f"{name}.npz"
    features = "file" if width else "degree"
    dataset = load(file, allow_pickle=True, directed=False, features=features)
    assert (dataset.num_nodes, dataset.report["edges_raw"], dataset.num_classes) == (nodes, edges, classes)
    assert (dataset.num_edges - dataset.report["self_loops"]) // 2 == undirected
    assert dataset.features.shape == (nodes, width or 1)
    if width is None:
        with pytest.raises(DatasetError, match=f"has no features for its {nodes} vertices") as error:
            load(file, allow_pickle=True, directed=False)
        assert error.value.why == f"{name}.npz has no node_attr"

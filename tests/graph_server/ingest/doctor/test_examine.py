"""The doctor refuses what a training refuses, says how to get past it, and needs neither labels nor features."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import plugins
from common.errors import DatasetError, SpecError
from common.job_spec import DatasetSpec
from graph_server.ingest.dataset import Dataset, prepare
from graph_server.ingest.detect import FORMATS
from graph_server.ingest.doctor.diagnosis import Diagnosis
from graph_server.ingest.doctor.examine import examine
from tests.conformance import dataset_proofs as proofs
from tests.graph_server.datasets.folders import applied, masks, raw_graph, write_folder
from tests.graph_server.ingest.doctor.looks import codes, finding, look_at

HERE = Path.cwd()
NAMES = plugins.names(FORMATS)


def looked_at(path: Path, **options: Any) -> Diagnosis:
    return examine(DatasetSpec(path=str(path), **options), HERE)


FAULTS: dict[str, dict[str, Any]] = {
    "one way": {"sources": np.array([0, 1]), "targets": np.array([1, 2])},
    "no features": {"features": None},
    "NaN": {"features": np.array([[1.0], [np.nan], [2.0], [3.0]])},
    "beyond float32": {"features": np.array([[1e39], [0], [2.0], [3.0]])},
    "sums are 0": {"features": np.array([[1, -1], [1, 1], [2, 0], [3, 0]]), "usual_normalization": "row"},
    "no labels": {"labels": None},
    "multi-label": {"labels": np.array([[1, 1], [0, 1], [0, 1], [1, 0]])},
    "all unlabelled": {"labels": np.full(4, -1)},
    "overlap": {"masks": masks([0, 1], [1], [2])},
    "no train vertex": {"masks": masks([], [1], [2])},
    "one class": {"labels": np.ones(4, np.int64)},
}


@given(st.lists(st.sampled_from(sorted(FAULTS)), max_size=4, unique=True), st.sampled_from(["auto", True, False]))
def test_it_refuses_what_a_training_refuses_and_by_the_same_words(faults: list[str], directed: bool | str):
    changes = {key: value for fault in faults for key, value in FAULTS[fault].items()}
    options = {"directed": directed}
    diagnosis = look_at(**changes, options=options)
    refusal = refusal_of(changes, options)
    assert diagnosis.accepted is (refusal is None)
    if refusal is not None:
        assert refusal.what in {one.what for one in diagnosis.findings if one.level == "refused"}


def refusal_of(changes: dict[str, Any], options: dict[str, Any]) -> DatasetError | None:
    try:
        applied(raw_graph(**changes), **options)
    except DatasetError as error:
        return error
    return None


@pytest.mark.parametrize("fault", ["one way", "no features", "NaN", "sums are 0"])
def test_each_option_gets_past_its_finding(fault: str):
    (refused,) = [one for one in look_at(**FAULTS[fault]).findings if one.level == "refused"]
    assert refused.options
    for option in refused.options:
        key, _, value = option.removeprefix("dataset.").partition(": ")
        applied(raw_graph(**FAULTS[fault]), **{key: {"true": True, "false": False}.get(value, value)})


@pytest.mark.parametrize("name", NAMES)
def test_every_format_is_looked_at(tmp_path: Path, name: str):
    path = proofs.example(plugins.load(FORMATS, name), tmp_path / "example")
    options = {"allow_pickle": True, "directed": False}
    diagnosis = looked_at(path, **options)
    assert diagnosis.format == name
    assert diagnosis.edges is not None
    if diagnosis.accepted:
        assert_counts_are(diagnosis, prepare(DatasetSpec(path=str(path), **options), HERE))
    else:
        with pytest.raises(DatasetError) as error:
            prepare(DatasetSpec(path=str(path), **options), HERE)
        assert error.value.what in {one.what for one in diagnosis.findings if one.level == "refused"}


def assert_counts_are(diagnosis: Diagnosis, dataset: Dataset) -> None:
    counted = (diagnosis.num_nodes, diagnosis.num_edges, diagnosis.num_features, diagnosis.num_classes)
    assert counted == (dataset.num_nodes, dataset.num_edges, dataset.features.shape[1], dataset.num_classes)
    report, about = dataset.report, diagnosis.edges
    assert about is not None
    for name in ("self_loops", "isolated", "zero_in_degree", "largest_in_degree", "reciprocity"):
        assert getattr(about, name) == report[name]


def test_an_edge_list_alone(tmp_path: Path):
    (tmp_path / "graph.txt").write_text("# mine\n0 1\n1 2\n2 0\n")
    diagnosis = looked_at(tmp_path / "graph.txt")
    assert codes(diagnosis) >= {"edges", "features", "labels"}
    assert (diagnosis.accepted, diagnosis.format, diagnosis.num_nodes, diagnosis.num_edges) == (
        False,
        "edge_list",
        3,
        3,
    )
    assert diagnosis.edges is not None
    assert diagnosis.edges.components == 1


def test_unknown_vertices_are_named_by_their_lines_and_the_rest_is_looked_at(tmp_path: Path):
    folder = write_folder(tmp_path, edges_csv="0,1\n1,0\n7,1\n", labels_csv="0\n1\n-1\n1\n")
    diagnosis = looked_at(folder)
    found = finding(diagnosis, "read")
    assert "names 1 times a vertex that does not exist: line 3: 7" in found.what
    assert found.options == ("dataset.drop_unknown_edges: true",)
    assert not diagnosis.accepted
    assert diagnosis.num_edges == 2
    assert "unlabelled" in codes(diagnosis)


def test_what_cannot_be_read_is_refused_with_its_line(tmp_path: Path):
    diagnosis = looked_at(write_folder(tmp_path, edges_csv="0,1\n1\n"))
    (found,) = diagnosis.findings
    assert "edges.csv:2" in found.what
    assert (diagnosis.accepted, diagnosis.format, diagnosis.num_nodes) == (False, "edge_list", None)


def test_what_has_no_format_or_is_not_there(tmp_path: Path):
    (tmp_path / "notes.bin").write_bytes(b"\0\1\2")
    for path in (tmp_path / "notes.bin", tmp_path / "nowhere"):
        diagnosis = looked_at(path)
        assert (diagnosis.accepted, diagnosis.format, codes(diagnosis)) == (False, None, {"format"})


def test_pickled_objects_are_not_read_unasked(tmp_path: Path):
    path = proofs.example(plugins.load(FORMATS, "graphdata"), tmp_path / "example")
    assert finding(looked_at(path), "read").options == ("dataset.allow_pickle: true",)
    assert looked_at(path, allow_pickle=True, directed=True).edges is not None


def test_a_type_that_is_not_there_is_refused(tmp_path: Path):
    diagnosis = looked_at(write_folder(tmp_path), edge_type="cites")
    assert finding(diagnosis, "types").fix == "remove dataset.edge_type"
    assert diagnosis.edges is not None


def test_an_option_that_names_nothing_is_the_callers_error(tmp_path: Path):
    with pytest.raises(SpecError, match="edge_lists"):
        looked_at(write_folder(tmp_path), format="edge_lists")


def test_findings_stand_in_the_order_of_their_weight():
    levels = [one.level for one in look_at(**FAULTS["one way"], labels=np.array([0, 0, -1, 0])).findings]
    assert levels == sorted(levels, key=["refused", "warning", "note"].index)
    assert set(levels) == {"refused", "warning", "note"}


def test_negative_ids_are_named_with_the_option_that_keeps_them(tmp_path: Path):
    diagnosis = looked_at(
        write_folder(tmp_path, edges_csv="0,-1\n-1,0\n", features_csv="id,f\n0,1\n-1,2\n", labels_csv="0\n1\n")
    )
    found = finding(diagnosis, "read")
    assert "features.csv:3: the id -1 is negative" in found.what
    assert found.options == ("dataset.negative_ids: true",)
    assert diagnosis.num_nodes == 2

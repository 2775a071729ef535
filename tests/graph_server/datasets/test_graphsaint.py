"""GraphSAINT folders: by row number, whatever the order in the JSON files."""

import json
from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import graphsaint
from tests.graph_server.datasets.folders import load


def read(folder: Path):
    return graphsaint.read(folder, DatasetSpec(path=str(folder)))


def write(folder: Path, **contents: object) -> Path:
    folder.mkdir(exist_ok=True)
    graphsaint.example(folder)
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_the_order_of_the_entries_means_nothing(tmp_path: Path):
    raw = read(write(tmp_path, class_map={"3": 5, "1": 3, "0": 0, "2": 7}))
    assert raw.labels.tolist() == [0, 3, 7, 5]
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 0])
    assert raw.masks["test"].tolist() == [False, False, False, True]
    assert raw.usual_normalization == "standard"


def test_features_are_scaled_by_the_train_rows(tmp_path: Path):
    dataset = load(write(tmp_path), directed=True)
    assert dataset.report["normalize_features"] == "standard"
    assert dataset.features[:2].mean(axis=0).tolist() == [0, 0]


def test_a_vertex_without_an_entry_is_unlabelled(tmp_path: Path):
    raw = read(write(tmp_path, class_map={"0": 0, "1": 1}, role={"tr": [1, 0]}))
    assert raw.labels.tolist() == [0, 1, -1, -1]
    assert "class_map.json has no entry for 2 vertices: 2, 3; they are unlabelled" in raw.notes
    assert not raw.masks["valid"].any()


def test_one_hot_lists_are_classes_and_others_are_several_labels(tmp_path: Path):
    one_hot = {"0": [1, 0], "1": [0, 1], "2": [1, 0], "3": [0, 1]}
    assert load(write(tmp_path, class_map=one_hot), directed=True).labels.tolist() == [0, 1, 0, 1]
    several = load(write(tmp_path, class_map=one_hot | {"2": [1, 1]}), directed=True)
    assert (several.task, several.labels.tolist()) == ("multi_label", [[1, 0], [0, 1], [1, 1], [0, 1]])


def test_a_vertex_without_an_entry_has_no_known_label(tmp_path: Path):
    dataset = load(write(tmp_path, class_map={"0": [1, 1], "1": [0, 1], "2": [1, 0]}), directed=True)
    assert np.isnan(dataset.labels[3]).all()
    assert dataset.report["unlabelled"] == 1


def test_inductive_training_is_spoken_of(tmp_path: Path):
    folder = write(tmp_path)
    assert not any("inductive" in note for note in read(folder).notes)
    (folder / "adj_train.npz").write_bytes((folder / "adj_full.npz").read_bytes())
    assert any("inductive training is not in this version" in note for note in read(folder).notes)


@pytest.mark.parametrize(("name", "lacks"), [("feats.npy", "feats.npy"), ("class_map.json", "class_map.json")])
def test_a_missing_file_is_named(tmp_path: Path, name: str, lacks: str):
    folder = write(tmp_path)
    (folder / name).unlink()
    with pytest.raises(DatasetError) as error:
        load(folder, directed=True)
    assert f"lacks {lacks}" in error.value.why


def test_without_roles_a_split_is_drawn(tmp_path: Path):
    folder = write(tmp_path)
    (folder / "role.json").unlink()
    assert read(folder).masks is None


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ({"class_map": {"0": 0, "9": 1}}, r"class_map\.json cannot be read: it labels rows 9"),
        ({"class_map": {"a": 0}}, r"class_map\.json cannot be read: needed"),
        ({"class_map": {"0": [1, 0], "1": 1}}, r"class_map\.json cannot be read: needed"),
        ({"class_map": '{"0": 1'}, r"class_map\.json cannot be read: Input data was truncated"),
        ({"class_map": '{"0": null}'}, r"class_map\.json cannot be read: Expected"),
        ({"class_map": "[" * 100_000}, r"class_map\.json cannot be read"),
        ({"role": {"tr": [4]}}, r"role\.json: train lists 1 rows that do not exist: 4"),
        ({"role": {"tr": [10**30]}}, r"role\.json cannot be read"),
        ({"role": {"train": [0]}}, r"role\.json names train"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, contents: dict, reason: str):
    with pytest.raises(DatasetError, match=reason):
        read(write(tmp_path, **contents))


def test_features_of_another_graph_are_refused(tmp_path: Path):
    folder = write(tmp_path)
    np.save(folder / "feats.npy", np.ones((3, 2)))
    with pytest.raises(DatasetError, match=r"feats\.npy cannot be read: it has shape \(3, 2\); .* has 4 vertices"):
        read(folder)


def test_arxiv(real_data: Path):
    folder = real_data / "graphsaint_ogbn_arxiv"
    raw = read(folder)
    assert (raw.num_nodes, raw.num_edges, len(np.unique(raw.labels))) == (169_343, 1_166_243, 40)
    assert [int(mask.sum()) for mask in raw.masks.values()] == [90_941, 29_799, 48_603]
    with pytest.raises(DatasetError, match="has no features for its 169343 vertices") as error:
        load(folder, directed=False)
    assert "lacks feats.npy" in error.value.why
    assert error.value.fix.endswith("or set dataset.features: degree or one_hot")
    assert load(folder, directed=False, features="degree").num_edges == 2 * 1_157_799

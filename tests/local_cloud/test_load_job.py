"""What TARGET means, and which layer of settings wins."""

import json
from pathlib import Path

import pytest

from cli.spec_flags import flag_layer
from common.errors import DatasetError, SpecError
from local_cloud.load_job import load_job, need_a_target
from tests.local_cloud.jobs import MY_GRAPH, ROOT, load


def write(folder: Path, text: str, name: str = "my job.yaml") -> str:
    (folder / name).write_text(text)
    return name


def test_a_bundled_name_needs_nothing_else():
    resolved = load("cora", {})
    assert resolved.spec.dataset.path == "cora"
    assert resolved.spec.name == "cora"
    assert (resolved.spec.model.name, resolved.spec.model.hidden_size) == ("gcn", 16)


def test_the_readers_defaults_follow_the_model():
    spec = load("cora", {"model.name": "gat"}).spec
    assert (spec.training.lr, spec.training.num_epochs, spec.model.dropout) == (0.005, 300, 0.6)


def test_flags_beat_the_file_and_the_file_beats_defaults(tmp_path: Path):
    target = write(tmp_path, "dataset: cora\nmodel: {name: gat, hidden_size: 4}\ntraining: {lr: 0.5, seed: 7}\n")
    resolved = load(target, {"training.lr": "0.25"}, tmp_path)
    training = resolved.spec.training
    assert (training.lr, training.seed, training.num_epochs) == (0.25, 7, 300)
    sources = {key: resolved.sources[f"training.{key}"] for key in ("lr", "seed", "num_epochs", "mode")}
    assert sources == {
        "lr": "--lr",
        "seed": "my job.yaml:3",
        "num_epochs": "defaults of cora for gat",
        "mode": "default",
    }


def test_a_job_is_named_after_its_file_unless_something_says_otherwise(tmp_path: Path):
    target = write(tmp_path, "dataset: cora\n")
    assert load(target, {}, tmp_path).spec.name == "my-job"
    assert load(target, {"name": "other"}, tmp_path).spec.name == "other"


def test_a_folder_is_a_dataset():
    resolved = load(MY_GRAPH, {"dataset.directed": "false"})
    assert resolved.spec.dataset.path == MY_GRAPH
    assert resolved.spec.name == "my_graph"


def test_json_is_a_job_spec_too(tmp_path: Path):
    target = write(tmp_path, json.dumps({"dataset": "cora", "training": {"lr": 0.125}}), "job.json")
    assert load(target, {}, tmp_path).spec.training.lr == 0.125


def test_no_target_but_a_dataset_flag():
    assert load(None, {"dataset.path": "cora"}).spec.training.num_epochs == 100


def test_lr_as_yaml_reads_it(tmp_path: Path):
    target = write(tmp_path, "dataset: cora\ntraining: {lr: 1e-3}\n")
    assert load(target, {}, tmp_path).spec.training.lr == 0.001


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "dataset: cora\ntraining:\n  num_epoch: 5\n",
            "training.num_epoch = 5 (my job.yaml:3) is not a key of the job spec\n  fix: did you mean num_epochs?",
        ),
        ("dataset: cora\ntraining: {lr: 1, lr: 2}\n", "lr"),
        ("dataset: cora\nmodel: {name: gcm}\n", "did you mean gcn?"),
        ("dataset: cora\ntraining: {inductive: true}\n", "inductive training is not in this version"),
        ("dataset: cora\ncluster: {spot: true}\n", "not in this version"),
        ("dataset: s3://bucket/graph\n", "not in this version"),
    ],
)
def test_a_bad_spec_is_refused_in_words(tmp_path: Path, text: str, said: str):
    target = write(tmp_path, text)
    with pytest.raises((SpecError, DatasetError)) as refused:
        load(target, {}, tmp_path)
    assert said in str(refused.value)


def test_a_dataset_that_is_not_there(tmp_path: Path):
    with pytest.raises(DatasetError, match="did you mean cora"):
        load("coar", {}, tmp_path)


def test_without_anything_there_is_nothing_to_train_on():
    with pytest.raises(SpecError, match="nothing to train on"):
        need_a_target(None, flag_layer({}))
    need_a_target("cora", flag_layer({}))
    need_a_target(None, flag_layer({"dataset.path": "cora"}))


def test_no_target_and_no_dataset_is_refused_with_the_key():
    with pytest.raises(SpecError, match="dataset is missing"):
        load_job(None, flag_layer({"training.lr": "0.1"}), ROOT)

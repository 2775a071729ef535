"""The schema alone: defaults, coercions, ranges, keys that do not go together."""

import math

import pytest
from pydantic import ValidationError

from common.job_spec import JobSpec, job_name_from, not_to_be_given
from common.spec_keys import groups, keys

DEFAULTS = {
    "version": 1,
    "dataset.format": "auto",
    "dataset.directed": "auto",
    "dataset.dedup": "auto",
    "dataset.edge_weight": None,
    "dataset.features": "file",
    "dataset.normalize_features": "auto",
    "dataset.split.train": 0.6,
    "dataset.split.valid": 0.2,
    "dataset.split.test": 0.2,
    "dataset.split_index": 0,
    "dataset.nan": "error",
    "dataset.task": "auto",
    "dataset.split_seed": 0,
    "dataset.drop_unknown_edges": False,
    "dataset.negative_ids": False,
    "dataset.allow_pickle": False,
    "dataset.edge_type": None,
    "dataset.node_type": None,
    "cut.num_intervals": "auto",
    "cut.method": "stream",
    "cut.cut_seed": 0,
    "model.name": "gcn",
    "model.hidden_size": 16,
    "model.num_layers": 2,
    "model.num_heads": 8,
    "model.activation": "relu",
    "model.dropout": 0.5,
    "model.attention_dropout": 0.0,
    "training.num_epochs": 200,
    "training.lr": 0.01,
    "training.optimizer": "adam",
    "training.momentum": 0.0,
    "training.weight_decay": 5e-4,
    "training.mode": "pipe",
    "training.staleness": 0,
    "training.weight_update": "epoch",
    "training.weight_prediction": True,
    "training.async_until": None,
    "training.precision": "float32",
    "training.seed": 0,
    "training.eval_frequency": "auto",
    "training.use_early_stop": False,
    "training.early_stop_rounds": 20,
    "training.early_stop_min_delta": 0.0,
    "training.target_metric": None,
    "training.metric": "auto",
    "training.class_weights": None,
    "training.deterministic": False,
    "training.hoist": True,
    "training.commute": True,
    "cluster.num_graph_servers": 1,
    "cluster.num_parameter_servers": 1,
    "cluster.max_restarts": 3,
    "cluster.instance_type": "c7g.2xlarge",
    "cluster.spot": False,
    "backend.name": "auto",
    "backend.min_lambdas": 1,
    "backend.max_lambdas": 100,
    "backend.memory_mb": 1769,
    "backend.lease_max_tasks": 10_000,
    "backend.lease_seconds": 240,
    "backend.lease_idle_ms": "auto",
    "backend.relaunch_ratio": 5,
    "backend.relaunch_floor_ms": 500,
    "budget.max_cost_usd": None,
    "budget.max_runtime_seconds": None,
    "output.path": "runs/",
    "output.save_model_frequency": 10,
    "output.checkpoint_seconds": 600,
    "output.keep_checkpoints": 2,
}


def spec_with(dotted: str, value: object, **others: object) -> JobSpec:
    """A spec with one key set, and `others` in the same group."""
    tree: dict = {"dataset": {"path": "cora"}}
    *parents, leaf = dotted.split(".")
    branch = tree
    for name in parents:
        branch = branch.setdefault(name, {})
    branch |= {leaf: value, **others}
    return JobSpec.model_validate(tree)


def value_of(spec: JobSpec, dotted: str) -> object:
    found: object = spec.model_dump()
    for name in dotted.split("."):
        found = found[name]
    return found


def test_every_key_has_its_default_and_only_the_dataset_must_be_given():
    found = {key.dotted: key.default for key in keys().values() if not key.required}
    assert found == {**DEFAULTS, "name": "job"}
    assert [key.dotted for key in keys().values() if key.required] == ["dataset.path"]
    with pytest.raises(ValidationError):
        JobSpec.model_validate({})


def test_every_key_says_what_it_means_and_what_is_allowed():
    assert [key.dotted for key in keys().values() if not key.meaning or not key.allowed] == []
    assert [name for name, about in groups().items() if not about] == []


def test_a_text_is_the_path_of_the_dataset():
    spec = JobSpec.model_validate({"dataset": "cora"})
    assert spec.dataset.path == "cora"
    assert spec == spec_with("dataset.path", "cora")


def test_a_spec_is_frozen_and_strict():
    spec = JobSpec.model_validate({"dataset": "cora"})
    with pytest.raises(ValidationError, match="frozen"):
        spec.training.lr = 1.0
    with pytest.raises(ValidationError, match="Extra inputs"):
        spec_with("training.learning", 1)


@pytest.mark.parametrize(
    ("dotted", "given", "kept"),
    [
        ("training.lr", "1e-3", 0.001),
        ("training.weight_decay", "5e-5", 5e-5),
        ("training.weight_decay", 0, 0.0),
        ("training.lr", " .5 ", 0.5),
        ("training.num_epochs", "12", 12),
        ("training.seed", "9223372036854775807", 2**63 - 1),
        ("training.target_metric", "none", None),
        ("training.target_metric", "-0.25", -0.25),
        ("training.eval_frequency", "0", 0),
        ("training.eval_frequency", "auto", "auto"),
        ("cut.num_intervals", "4096", 4096),
        ("training.hoist", "no", False),
        ("training.hoist", "True", True),
        ("dataset.directed", "auto", "auto"),
        ("dataset.directed", "false", False),
        ("dataset.dedup", True, True),
        ("model.hidden_size", "32", 32),
        ("model.hidden_size", "32,16", (32, 16)),
        ("model.hidden_size", [32], (32,)),
        ("model.hidden_size", ["32", 16], (32, 16)),
        ("model.hidden_size", [], ()),
        ("training.class_weights", "balanced", "balanced"),
        ("training.class_weights", "1, 2.5,0", (1.0, 2.5, 0.0)),
        ("training.class_weights", [1, "5e-1"], (1.0, 0.5)),
        ("training.class_weights", "null", None),
        ("dataset.edge_weight", "None", "None"),
    ],
)
def test_text_becomes_what_the_key_wants(dotted, given, kept):
    found = value_of(spec_with(dotted, given), dotted)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    ("dotted", "value"),
    [
        ("version", 2),
        ("version", 1.0),
        ("name", "a/b"),
        ("name", ""),
        ("name", "-a"),
        ("name", "a" * 64),
        ("name", 2024),
        ("dataset.path", ""),
        ("dataset.path", 5),
        ("dataset.directed", 1),
        ("dataset.directed", "maybe"),
        ("dataset.features", "learnable"),
        ("dataset.split.train", 0),
        ("dataset.split.valid", 1.5),
        ("dataset.split_index", -1),
        ("cut.num_intervals", 0),
        ("cut.num_intervals", 4097),
        ("cut.num_intervals", "many"),
        ("cut.method", "ldg"),
        ("model.hidden_size", 0),
        ("model.hidden_size", [16, 0]),
        ("model.hidden_size", "16,"),
        ("model.hidden_size", True),
        ("model.hidden_size", [[16]]),
        ("model.hidden_size", 16.0),
        ("model.num_layers", 0),
        ("model.num_heads", 0),
        ("model.dropout", 1),
        ("model.dropout", 0.999),
        ("model.dropout", -0.1),
        ("model.activation", "gelu"),
        ("training.num_epochs", 0),
        ("training.num_epochs", 2.0),
        ("training.num_epochs", True),
        ("training.num_epochs", None),
        ("training.num_epochs", "010"),
        ("training.num_epochs", "1_000"),
        ("training.num_epochs", "1e3"),
        ("training.lr", True),
        ("training.lr", 0),
        ("training.lr", "1:30"),
        ("training.lr", "0x1"),
        ("training.lr", "2024-01-01"),
        ("training.lr", math.nan),
        ("training.lr", math.inf),
        ("training.lr", "1e999"),
        ("training.lr", 10**400),
        ("training.lr", "nan"),
        ("training.lr", None),
        ("training.momentum", 1),
        ("training.seed", -1),
        ("training.seed", 2**63),
        ("training.class_weights", []),
        ("training.class_weights", [0, 0]),
        ("training.class_weights", [-1, 1]),
        ("training.class_weights", "some"),
        ("training.class_weights", 3),
        ("training.early_stop_rounds", 0),
        ("training.hoist", None),
        ("cluster.num_graph_servers", 0),
        ("cluster.instance_type", "large"),
        ("backend.memory_mb", 64),
        ("backend.lease_seconds", 900),
        ("backend.relaunch_ratio", 1),
        ("budget.max_cost_usd", 0),
        ("output.keep_checkpoints", 0),
    ],
)
def test_what_is_not_allowed_is_refused(dotted, value):
    with pytest.raises(ValidationError) as caught:
        spec_with(dotted, value)
    (error,) = caught.value.errors()
    assert ".".join(error["loc"]) == dotted


def test_the_largest_dropout_keeps_something():
    assert round(256 * spec_with("model.dropout", 0.998).model.dropout) == 255


@pytest.mark.parametrize(
    ("hidden_size", "num_layers", "widths"),
    [(16, 2, (16,)), (16, 4, (16, 16, 16)), (16, 1, ()), ([32, 16], 3, (32, 16)), ([], 1, ())],
)
def test_one_width_per_hidden_layer(hidden_size, num_layers, widths):
    assert spec_with("model.hidden_size", hidden_size, num_layers=num_layers).model.hidden_sizes == widths


def test_a_list_of_widths_fixes_the_layers():
    assert spec_with("model.hidden_size", [64, 32, 16]).model.num_layers == 4
    assert spec_with("model.hidden_size", "64,32").model.num_layers == 3


@pytest.mark.parametrize(
    ("dotted", "value", "others", "text"),
    [
        ("model.hidden_size", [32, 16], {"num_layers": 2}, "a list of 2 hidden widths makes 3 layers"),
        ("training.staleness", 0, {}, "in pipe mode a Gather waits for this epoch's rows, so a bound has no effect"),
        ("training.staleness", 2, {"mode": "sync"}, "in sync mode a Gather waits"),
        ("training.weight_prediction", False, {}, "in pipe mode no epoch begins before all updates are there"),
        ("training.weight_update", "interval", {}, "pipe mode makes one optimizer step per epoch"),
        ("training.async_until", 0.8, {}, "pipe mode has no asynchronous epochs to end"),
        ("training.momentum", 0.9, {}, "adam keeps its own moving averages and reads no momentum"),
        ("training.momentum", 0.9, {"optimizer": "adamw"}, "adamw keeps its own"),
        ("training.use_early_stop", True, {"eval_frequency": 0}, "the valid metric is not known before the end"),
        ("training.target_metric", 0.8, {"eval_frequency": 0}, "the valid metric is not known before the end"),
        ("dataset.split.train", 0.9, {}, "the fractions add up to 1.3"),
        ("backend.min_lambdas", 101, {}, "the least number of leases is above the largest"),
    ],
)
def test_keys_that_do_not_go_together(dotted, value, others, text):
    with pytest.raises(ValidationError, match=text):
        spec_with(dotted, value, **others)


@pytest.mark.parametrize(
    ("dotted", "value", "others"),
    [
        ("training.staleness", 0, {"mode": "async"}),
        ("training.weight_prediction", False, {"mode": "async"}),
        ("training.weight_update", "interval", {"mode": "async"}),
        ("training.momentum", 0.9, {"optimizer": "sgd"}),
        ("training.momentum", 0.0, {}),
        ("training.use_early_stop", True, {"eval_frequency": 5}),
        ("dataset.split.train", 0.7, {"valid": 0.2, "test": 0.1}),
    ],
)
def test_keys_that_go_together(dotted, value, others):
    assert value_of(spec_with(dotted, value, **others), dotted) == value


@pytest.mark.parametrize("mode", ["pipe", "async"])
def test_a_spec_can_be_handed_on(mode):
    spec = spec_with("training.mode", mode, **({"staleness": 1} if mode == "async" else {}))
    assert JobSpec.model_validate_json(spec.model_dump_json(exclude_unset=True)) == spec
    assert ({"training.staleness", "training.weight_prediction"} <= not_to_be_given(spec)) == (mode == "pipe")


@pytest.mark.parametrize(
    ("text", "name"),
    [("reddit-gcn", "reddit-gcn"), ("my graph (2)", "my-graph-2"), ("..", "job"), ("é", "job"), ("x" * 99, "x" * 63)],
)
def test_a_job_name_out_of_any_text(text, name):
    assert job_name_from(text) == name
    assert spec_with("name", job_name_from(text)).name == name

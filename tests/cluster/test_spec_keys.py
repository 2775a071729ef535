"""Which keys of a job spec change bits: none of the machine's, and those of the mathematics."""

from collections.abc import Callable
from functools import cache

import pytest

from common.spec_keys import keys
from common.unbuilt import UNBUILT
from tests.cluster.real_jobs import Trained, train
from tests.local_cloud.jobs import MY_GRAPH

MACHINE = ("cluster", "backend", "budget", "output")
SETTINGS = {
    "dataset.directed": "false",
    "training.num_epochs": "3",
    "cut.num_intervals": "6",
    "cluster.num_graph_servers": "3",
}
FLIPPED = {
    "cluster.num_graph_servers": "2",
    "cluster.num_parameter_servers": "3",
    "cluster.max_restarts": "0",
    "cluster.instance_type": "c7g.large",
    "backend.name": "local_cpu",
    "backend.min_lambdas": "3",
    "backend.max_lambdas": "7",
    "backend.memory_mb": "512",
    "backend.lease_max_tasks": "1",
    "backend.lease_seconds": "30",
    "backend.lease_idle_ms": "50",
    "backend.relaunch_ratio": "2",
    "backend.relaunch_floor_ms": "10",
    "budget.max_cost_usd": "5",
    "budget.max_runtime_seconds": "600",
    "output.path": "elsewhere/",
    "output.save_model_frequency": "1",
    "output.checkpoint_seconds": "1",
    "output.keep_checkpoints": "1",
}
CHANGING = {
    "dataset.normalize_features": "row",
    "dataset.split_seed": "1",
    "cut.num_intervals": "5",
    "cut.method": "hash",
    "cut.cut_seed": "1",
    "model.name": "graphsage",
    "model.hidden_size": "8",
    "model.num_layers": "3",
    "model.activation": "tanh",
    "model.dropout": "0.25",
    "training.lr": "0.02",
    "training.optimizer": "adamw",
    "training.weight_decay": "0.1",
    "training.seed": "1",
    "training.class_weights": "balanced",
    "training.num_epochs": "4",
}
NEUTRAL = {"training.mode": "sync", "training.eval_frequency": "2"}
"""Of the mathematics, and yet without effect on any weights version."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Trained]:
    cache_dir = tmp_path_factory.mktemp("graph")

    @cache
    def once(key: str | None = None, value: str = "") -> Trained:
        return train(MY_GRAPH, SETTINGS | ({key: value} if key else {}), cache_dir)

    return once


def refused_whatever_is_given(key: str) -> bool:
    return any(row.key == key and not row.refused_prefix and len(row.works) <= 1 for row in UNBUILT)


def test_every_key_of_the_machine_is_flipped_unless_this_version_refuses_it():
    ours = {key for key in keys() if key.split(".")[0] in MACHINE}
    assert set(FLIPPED) == {key for key in ours if not refused_whatever_is_given(key)}


@pytest.mark.parametrize("key", FLIPPED)
def test_a_key_of_the_machine_changes_no_bit(trained: Callable[..., Trained], key: str):
    assert trained(key, FLIPPED[key]).bits == trained().bits


@pytest.mark.parametrize("key", NEUTRAL)
def test_when_to_evaluate_and_when_to_wait_change_no_weights(trained: Callable[..., Trained], key: str):
    assert trained(key, NEUTRAL[key]).bits.last == trained().bits.last


@pytest.mark.parametrize("key", CHANGING)
def test_a_key_of_the_mathematics_changes_bits(trained: Callable[..., Trained], key: str):
    assert trained(key, CHANGING[key]).bits.last != trained().bits.last

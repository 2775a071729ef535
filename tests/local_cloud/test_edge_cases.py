"""Graphs and cuts at the edge of what is legal: each trains to its end, on several graph servers as on one."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from local_cloud.observer import Silent
from local_cloud.prepare import prepare_job
from tests.cluster.real_jobs import Trained, train
from tests.cluster.small_jobs import MODELS
from tests.local_cloud.jobs import load

NUM_EPOCHS = 3
Edges = list[tuple[int, int]]


def ring(num_nodes: int) -> Edges:
    return [(node, (node + 1) % num_nodes) for node in range(num_nodes)]


def masks(num_nodes: int, *, train: int, valid: int, test: int) -> np.ndarray:
    """[N, 3]: the first vertices train, the next choose, the next judge."""
    names = np.repeat([0, 1, 2, 3], [train, valid, test, num_nodes - train - valid - test])
    return np.eye(4, dtype=np.int64)[names][:, :3]


@dataclass(frozen=True, eq=False)
class Tiny:
    """A graph as files; without masks it is split by the spec. `num_classes` as they should be found."""

    num_nodes: int
    edges: Edges
    labels: list[int]
    num_classes: int
    masks: np.ndarray | None = None
    directed: bool = False
    settings: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> str:
        folder.mkdir()
        features = np.random.default_rng(self.num_nodes).normal(size=(self.num_nodes, 3)).astype(np.float32)
        np.save(folder / "features.npy", features)
        np.save(folder / "labels.npy", np.array(self.labels))
        np.save(folder / "edges.npy", np.array(self.edges, np.int64).reshape(-1, 2))
        if self.masks is not None:
            np.save(folder / "masks.npy", self.masks)
        return str(folder)


def alternating(num_nodes: int, num_classes: int = 2) -> list[int]:
    return [node % num_classes for node in range(num_nodes)]


HUB = [(0, node) for node in range(1, 25)]
CASES = {
    "more intervals than vertices": Tiny(
        5, ring(5), alternating(5), 2, settings={"cut.num_intervals": "9", "cluster.num_graph_servers": "3"}
    ),
    "more graph servers than intervals": Tiny(
        9, ring(9), alternating(9), 2, settings={"cut.num_intervals": "2", "cluster.num_graph_servers": "5"}
    ),
    "more of everything than vertices": Tiny(
        2,
        [(0, 1)],
        [0, 1],
        2,
        settings={"cut.num_intervals": "8", "cluster.num_graph_servers": "6", "cluster.num_parameter_servers": "9"},
    ),
    "empty intervals": Tiny(
        6, ring(6), alternating(6), 2, settings={"cut.num_intervals": "6", "cut.method": "hash", "cut.cut_seed": "3"}
    ),
    "isolated vertices": Tiny(8, [(0, 1), (1, 2), (0, 2)], alternating(8), 2),
    "one vertex": Tiny(1, [], [0], 1, masks(1, train=1, valid=0, test=0)),
    "one vertex with a loop": Tiny(1, [(0, 0)], [0], 1, masks(1, train=1, valid=0, test=0), directed=True),
    "no edges": Tiny(6, [], alternating(6), 2),
    "a hub": Tiny(25, HUB, alternating(25), 2),
    "a hub that only reads": Tiny(25, [(node, 0) for _, node in HUB], alternating(25), 2, directed=True),
    "a hub that is only read": Tiny(25, HUB, alternating(25), 2, directed=True),
    "loops and duplicates": Tiny(6, [*ring(6), *ring(6), (2, 2), (2, 2), (5, 5)], alternating(6), 2, directed=True),
    "a class missing from train": Tiny(9, ring(9), [0, 0, 1, 1, 2, 2, 2, 0, 1], 3, masks(9, train=4, valid=2, test=2)),
    "labels 1 to 40": Tiny(80, ring(80), [1 + node % 40 for node in range(80)], 40),
    "unlabelled vertices": Tiny(9, ring(9), [0, 1, 0, 1, 0, 1, -1, -1, -1], 2, masks(9, train=4, valid=1, test=1)),
    "no valid mask": Tiny(8, ring(8), alternating(8), 2, masks(8, train=4, valid=0, test=4)),
    "no test mask": Tiny(8, ring(8), alternating(8), 2, masks(8, train=4, valid=4, test=0)),
    "one train vertex": Tiny(8, ring(8), alternating(8), 2, masks(8, train=1, valid=3, test=3)),
    "one layer": Tiny(8, ring(8), alternating(8), 2, settings={"model.num_layers": "1"}),
    "four layers": Tiny(8, ring(8), alternating(8), 2, settings={"model.num_layers": "4"}),
    "a hidden size of 1": Tiny(8, ring(8), alternating(8), 2, settings={"model.hidden_size": "1"}),
    "three hidden sizes": Tiny(8, ring(8), alternating(8), 2, settings={"model.hidden_size": "5,1,7"}),
    "without hoisting and commuting": Tiny(
        8, ring(8), alternating(8), 2, settings={"training.hoist": "false", "training.commute": "false"}
    ),
}
EMPTIEST = ("more of everything than vertices", "one vertex", "no edges")
WITH_MODELS = [
    (name, model)
    for number, name in enumerate(CASES)
    for model in (MODELS if name in EMPTIEST else (MODELS[number % 4], MODELS[(number + 1) % 4]))
]
"""Every case with two models; those where most is missing with all."""
ALONE = {"cluster.num_graph_servers": "1", "cluster.num_parameter_servers": "1"}


def settings_of(tiny: Tiny, model: str) -> dict[str, str]:
    return {
        "model.name": model,
        "dataset.directed": str(tiny.directed).lower(),
        "training.num_epochs": str(NUM_EPOCHS),
        "cut.num_intervals": "4",
        "cluster.num_graph_servers": "2",
        "model.num_heads": "2",
        "model.attention_dropout": "0.25",
        **tiny.settings,
    }


def check(trained: Trained, tiny: Tiny) -> None:
    result, metrics = trained.result, trained.bits.metrics
    assert (result.stopped.state.value, result.stopped.last_version) == ("Completed", NUM_EPOCHS)
    assert [one.epoch for one in metrics] == list(range(1, NUM_EPOCHS + 1))
    assert all(np.isfinite(one.loss) for one in metrics)
    assert all(np.isfinite(rows).all() for rows in result.last.values())
    assert result.logits is not None
    assert result.logits.shape == (tiny.num_nodes, tiny.num_classes)
    assert np.isfinite(result.logits).all()


@pytest.mark.parametrize(("name", "model"), WITH_MODELS)
def test_it_trains_to_the_end_and_the_graph_servers_change_no_bit(name: str, model: str, tmp_path: Path):
    tiny = CASES[name]
    folder, settings = tiny.write(tmp_path / "graph"), settings_of(tiny, model)
    trained = train(folder, settings, tmp_path)
    check(trained, tiny)
    assert train(folder, settings | ALONE, tmp_path).bits == trained.bits


def trained_case(name: str, tmp_path: Path) -> Trained:
    tiny = CASES[name]
    return train(tiny.write(tmp_path / "graph"), settings_of(tiny, "gcn"), tmp_path)


def test_without_a_valid_mask_the_last_version_is_the_best(tmp_path: Path):
    trained = trained_case("no valid mask", tmp_path)
    assert trained.result.stopped.best_version == NUM_EPOCHS
    assert trained.bits.best == trained.bits.last
    assert all(metrics.valid_accuracy is None for metrics in trained.bits.metrics)
    assert all(metrics.test_accuracy is not None for metrics in trained.bits.metrics)


def test_without_a_test_mask_there_is_no_test_accuracy(tmp_path: Path):
    metrics = trained_case("no test mask", tmp_path).bits.metrics
    assert all(one.test_accuracy is None and one.valid_accuracy is not None for one in metrics)


def test_graph_servers_without_intervals_are_legal(tmp_path: Path):
    result = trained_case("more graph servers than intervals", tmp_path).result
    assert sorted(result.intervals_per_server) == [0, 0, 0, 1, 1]


def test_a_missing_class_is_kept_and_the_user_is_told(tmp_path: Path):
    class Notes(Silent):
        def note(self, text: str) -> None:
            heard.append(text)

    heard: list[str] = []
    tiny = CASES["a class missing from train"]
    spec = load(tiny.write(tmp_path / "graph"), settings_of(tiny, "gcn")).spec
    job = prepare_job(spec, base_folder=tmp_path, cache_dir=tmp_path, observer=Notes())
    assert job.folder.manifest.train_class_counts == (2, 2, 0)
    assert "classes 2 have no train vertex: the model cannot learn them" in heard


def test_the_users_labels_are_kept_beside_the_classes(tmp_path: Path):
    tiny = CASES["labels 1 to 40"]
    spec = load(tiny.write(tmp_path / "graph"), settings_of(tiny, "gcn")).spec
    manifest = prepare_job(spec, base_folder=tmp_path, cache_dir=tmp_path, observer=Silent()).folder.manifest
    assert manifest.class_values == tuple(range(1, 41))
    assert manifest.num_classes == 40

"""The gradients of a whole distributed epoch are the derivatives of the loss, across partition boundaries.

Training runs as it always does, with plain SGD in float64, so the gradient of an epoch is (w - w') / lr. The loss whose
differences it is held against is the reference's, which knows no partitions.
"""

from pathlib import Path

import numpy as np
import pytest

from local_cloud.in_process import RunResult, Watch, run_in_process
from local_cloud.prepare import PreparedJob
from tests.reference import Reference, Weights, reference_of
from tests.small_jobs import small_dataset, small_job

MODELS = ("gcn", "graphsage", "gin", "gat")
LR = 0.5
STEP = 1e-6

KEYS = {
    "model.hidden_size": 4,
    "model.num_heads": 2,
    "model.activation": "elu",
    "model.dropout": 0.4,
    "model.attention_dropout": 0.3,
    "training.optimizer": "sgd",
    "training.lr": LR,
    "training.weight_decay": 0.0,
    "training.eval_frequency": 0,
    "training.class_weights": (0.5, 2.0, 1.25),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


def job(folder: Path, model: str, *, directed: bool, num_graph_servers: int, num_epochs: int) -> PreparedJob:
    keys = {
        **KEYS,
        "model.name": model,
        "training.num_epochs": num_epochs,
        "cluster.num_graph_servers": num_graph_servers,
    }
    return small_job(small_dataset(directed=directed), folder, keys)


def train(job: PreparedJob) -> tuple[RunResult, list[float]]:
    losses: list[float] = []
    run = run_in_process(job, Watch(on_epoch=lambda metrics: losses.append(metrics.loss)), dtype=np.float64)
    return run, losses


def differences(reference: Reference, weights: Weights, epoch: int) -> Weights:
    """Central ones, of every weight on its own."""
    moved, slopes = {name: w.copy() for name, w in weights.items()}, {}
    for name, w in moved.items():
        slopes[name] = np.empty_like(w)
        for place in np.ndindex(w.shape):
            before, ends = w[place], []
            for sign in (1, -1):
                w[place] = before + sign * STEP
                ends.append(reference.loss(moved, epoch)[0])
            w[place] = before
            slopes[name][place] = (ends[0] - ends[1]) / (2 * STEP)
    return slopes


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_gradients_across_a_partition_boundary(folder, model, directed):
    """Of the second epoch: in the first, weights that begin at zero lie on a kink of relu or have no effect."""
    expected = None
    for num_graph_servers in (2, 3):
        shape = {"directed": directed, "num_graph_servers": num_graph_servers}
        one, _ = train(job(folder, model, **shape, num_epochs=1))
        two, losses = train(job(folder, model, **shape, num_epochs=2))
        assert min(two.intervals_per_server) > 0
        assert min(two.ghosts_per_server) > 0

        if expected is None:
            reference = reference_of(job(folder, model, **shape, num_epochs=2))
            expected = differences(reference, dict(one.last), epoch=2)
            expected_loss = reference.loss(dict(one.last), 2)[0]
        assert abs(losses[1] - expected_loss) < 1e-12
        for name, slopes in expected.items():
            gradient = (one.last[name] - two.last[name]) / LR
            assert np.abs(gradient - slopes).max() < 1e-6, name
            assert np.abs(gradient).max() > 1e-4, f"{name} has no gradient to be checked"


def test_the_graph_has_what_can_go_wrong():
    """Duplicate edges, self loops, an isolated vertex, an unlabelled train vertex, edges that have no reverse."""
    dataset = small_dataset(directed=True)
    edges = list(zip(dataset.sources.tolist(), dataset.targets.tolist(), strict=True))
    assert len(set(edges)) < len(edges)
    assert any(source == target for source, target in edges)
    assert any((target, source) not in edges for source, target in edges)
    assert dataset.num_nodes - 1 not in {end for edge in edges for end in edge}
    assert dataset.labels[0] == -1
    assert dataset.masks[0] == 1

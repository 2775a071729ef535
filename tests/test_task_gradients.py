"""The gradients of a whole epoch of multi-label and regression are the derivatives of a loss written down here.

As in test_gradients: plain SGD in float64, so the gradient of an epoch is (w - w') / lr.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graph_server.ingest.dataset import Dataset
from local_cloud.prepare import PreparedJob
from tests.reference import Weights, reference_of
from tests.small_jobs import small_dataset, small_job
from tests.test_gradients import KEYS, LR, STEP, train

OUTPUTS = 3
WEIGHTS = {"multi_label": (0.5, 2.0, 1.25), "regression": None}


def dataset_of(task: str) -> Dataset:
    """A fifth of the entries unknown; the first vertex, which trains, has one label only."""
    dataset, random = small_dataset(), np.random.default_rng(1)
    shape = (dataset.num_nodes, OUTPUTS)
    labels = random.integers(0, 2, shape) if task == "multi_label" else random.normal(size=shape)
    labels = np.where(random.random(shape) < 0.2, np.nan, labels).astype(np.float32)
    labels[0] = [np.nan, 1, np.nan]
    return replace(
        dataset, task=task, labels=labels, class_values=(0, 1, 2), fingerprint=f"{task[:5]}{dataset.fingerprint}"
    )


def job(folder: Path, task: str, model: str, num_graph_servers: int, num_epochs: int) -> PreparedJob:
    keys = {
        **KEYS,
        "model.name": model,
        "training.num_epochs": num_epochs,
        "training.class_weights": WEIGHTS[task],
        "cluster.num_graph_servers": num_graph_servers,
    }
    return small_job(dataset_of(task), folder, keys)


def loss_at(weights: Weights, job: PreparedJob, task: str) -> float:
    """Of epoch 2, entry by entry."""
    dataset, order = dataset_of(task), job.folder.cut.order
    z, y = reference_of(job).forward(weights, 2)[0], dataset.labels[order].astype(np.float64)
    weight = np.where(~np.isnan(y) & (dataset.masks[order] == 1)[:, None], np.array(WEIGHTS[task] or (1.0,) * 3), 0)
    share = 1 / (1 + np.exp(-z))
    each = (z - y) ** 2 if task == "regression" else -y * np.log(share) - (1 - y) * np.log(1 - share)
    return float((weight * np.where(weight > 0, each, 0)).sum() / weight.sum())


@pytest.mark.parametrize("task", ["multi_label", "regression"])
@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_gradients_across_a_partition_boundary(tmp_path: Path, model: str, task: str):
    one, _ = train(job(tmp_path, task, model, 2, 1))
    two, losses = train(job(tmp_path, task, model, 3, 2))
    assert min(two.ghosts_per_server) > 0
    prepared = job(tmp_path, task, model, 3, 2)
    moved = {name: w.copy() for name, w in one.last.items()}
    assert abs(losses[1] - loss_at(moved, prepared, task)) < 1e-12
    for name, w in moved.items():
        for place in np.ndindex(w.shape):
            before, ends = w[place], []
            for sign in (1, -1):
                w[place] = before + sign * STEP
                ends.append(loss_at(moved, prepared, task))
            w[place] = before
            gradient = (one.last[name][place] - two.last[name][place]) / LR
            assert abs(gradient - (ends[0] - ends[1]) / (2 * STEP)) < 1e-6, (name, place)

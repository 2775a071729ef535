"""Training Cora in 12 intervals on 2 graph servers is training it plainly: pipe mode changes nothing but rounding."""

from pathlib import Path

import numpy as np
import pytest

from cli.spec_flags import flag_layer
from local_cloud.in_process import Watch, run_in_process
from local_cloud.load_job import load_job
from local_cloud.observer import Silent
from local_cloud.prepare import PreparedJob, prepare_job
from parameter_server.initial_weights import initial_weights
from tests.reference import adam, reference_of

MODELS = ("gcn", "graphsage", "gin", "gat")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def cora(model: str, epochs: int, cache: Path) -> PreparedJob:
    """With the settings that `dorylus train cora` has for the model: dropout, attention dropout, weight decay, Adam."""
    flags = {
        "model.name": model,
        "training.num_epochs": str(epochs),
        "training.eval_frequency": "0",
        "cut.num_intervals": "12",
        "cluster.num_graph_servers": "2",
    }
    spec = load_job("cora", flag_layer(flags), cache).spec
    return prepare_job(spec, base_folder=cache, cache_dir=cache, observer=Silent())


def check(job: PreparedJob, dtype: type, *, within: float) -> None:
    losses: list[float] = []
    run = run_in_process(job, Watch(on_epoch=lambda metrics: losses.append(metrics.loss)), dtype=dtype)
    assert min(run.intervals_per_server) > 0
    assert min(run.ghosts_per_server) > 0

    training = job.spec.training
    reference = reference_of(job)
    weights = initial_weights(job.programs.model.parameters(), training.seed, dtype)
    expected, weights = adam(
        reference, weights, epochs=training.num_epochs, lr=training.lr, weight_decay=training.weight_decay
    )
    logits, _ = reference.forward(weights, None)
    assert np.abs(np.array(losses) - expected).max() < within
    assert run.last.keys() == weights.keys()
    assert max(np.abs(run.last[name] - weights[name]).max() for name in weights) < within
    # Those of GIN, which sums without averaging, reach 200.
    assert np.abs(run.logits - logits).max() < within * max(1, np.abs(logits).max())
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("model", MODELS)
def test_pipe_is_the_reference_after_20_epochs(model, cache):
    check(cora(model, 20, cache), np.float32, within=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_in_float64_it_is_the_reference_to_the_twelfth_digit(model, cache):
    check(cora(model, 2, cache), np.float64, within=1e-12)

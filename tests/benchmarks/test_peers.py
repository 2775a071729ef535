"""Peers train the same model from the same weights on the same graph; where they are missing, nothing is claimed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import peer_run as peers
from benchmarks.epoch_time import SAME_CURVE
from benchmarks.graphs import Recipe, draw, write
from benchmarks.modes import prepared
from benchmarks.outcome import deviation
from benchmarks.own_run import resolved
from benchmarks.peer_run import ENVIRONMENTS, PEERS, Peer, forecast, peer_run
from benchmarks.sizes import SIZES, csr_file, num_edges
from local_cloud.in_process import run_in_process
from local_cloud.run_result import Watch

TINY = Recipe("blocks", 300, 1500, num_features=24, num_classes=3, train=0.5)
MODELS = ("gcn", "graphsage", "gat")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin stop each other where cores are shared


def settings(model: str) -> dict[str, str]:
    """Without dropout, whose masks nobody shares."""
    return {
        "model.name": model,
        "model.hidden_size": "8",
        "model.num_heads": "4",
        "model.dropout": "0",
        "training.num_epochs": "6",
        "training.eval_frequency": "0",
    }


def own_losses(model: str) -> list[float]:
    from benchmarks.modes import generated_graphs

    job, losses = prepared(str(write(TINY, generated_graphs())), settings(model)), list[float]()
    run_in_process(job, Watch(on_epoch=lambda ended: losses.append(ended.loss)))
    return losses


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", PEERS)
def test_the_loss_curves_are_the_same(name: str, model: str):
    peer = PEERS[name]
    if peer.python(ENVIRONMENTS) is None:
        pytest.skip("make peers has not been run")
    if model not in peer.models:
        pytest.skip(f"{name} is not measured with {model}")
    found = peer_run(peer, TINY, resolved(TINY, settings(model)), num_epochs=6, seconds=60)
    assert found.why == ""
    assert len(found.seconds) == len(found.losses) == 6
    assert found.peak_bytes > 50_000_000
    apart = deviation(own_losses(model), found.losses)
    assert apart is not None
    assert apart < SAME_CURVE
    assert found.losses[-1] < found.losses[0]


def test_a_peer_that_is_missing_is_not_run(tmp_path: Path):
    found = peer_run(
        PEERS["dgl"], TINY, resolved(TINY, settings("gcn")), num_epochs=1, seconds=1, environments=tmp_path
    )
    assert (found.seconds, found.why) == ((), "not installed")


def test_a_peer_that_would_not_fit_is_not_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    python = tmp_path / "peers" / "dgl" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()  # it could not even be started
    monkeypatch.setattr(peers, "MEMORY_SHARE", 1e-6)
    spec = resolved(TINY, settings("gcn"))
    found = peer_run(PEERS["dgl"], TINY, spec, num_epochs=1, seconds=1, environments=tmp_path / "peers")
    assert found.why.startswith("does not fit: about 0 GB of ")


def test_messages_take_more_memory_than_sums():
    spec, large = resolved(TINY, settings("gcn")), Peer("other", "none", "none.py", edge_bytes=26, message=2)
    per_edge = 4 * 2 * (8 + 3)
    assert forecast(large, TINY, spec) - forecast(PEERS["dgl"], TINY, spec) == per_edge * num_edges(TINY)


def test_the_csr_holds_the_edges_of_the_graph():
    with np.load(csr_file(TINY)) as csr:
        indptr, indices = csr["indptr"], csr["indices"]
    targets = np.repeat(np.arange(TINY.num_vertices), np.diff(indptr))
    edges = draw(TINY).edges
    assert np.array_equal(
        np.sort(indices.astype(np.int64) * 300 + targets), np.sort(edges[0] * TINY.num_vertices + edges[1])
    )
    assert (indptr.dtype, indices.dtype) == (np.int64, np.int32)


def test_a_size_has_about_the_edges_it_says():
    assert num_edges(SIZES["cora"]) == pytest.approx(10_556, rel=0.02)
    assert num_edges(replace(SIZES["small"], seed=1)) == pytest.approx(400_000, rel=0.02)

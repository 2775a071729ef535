"""Peers as contestants: a program of benchmarks/peers/ under the Python that `make peers` has set up for it.

It gets the same graph in the order of its file, the same model, the same first weights and as many threads as there are
cores. It is not started when it would take more than MEMORY_SHARE of the memory there is.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from benchmarks.graphs import Recipe, write
from benchmarks.modes import generated_graphs
from benchmarks.outcome import Outcome
from benchmarks.sizes import csr_file, num_edges
from benchmarks.watched import environment, run_watched
from common.job_setup import derive_programs
from common.job_spec import JobSpec
from parameter_server.initial_weights import initial_weights

PROGRAMS = Path(__file__).parent / "peers"
ENVIRONMENTS = Path(__file__).resolve().parents[1] / ".peers"
MEMORY_SHARE = 0.7


@dataclass(frozen=True)
class Peer:
    """needs: a package that its environment may lack. models: that it is measured with.

    edge_bytes   of what it keeps for an edge, whatever the model's widths
    message      how many values of a layer's width it keeps for an edge; 0: it makes no messages
    head         the same, of a layer's number of heads, in attention models
    """

    name: str
    home: str
    program: str
    form: str = ""
    needs: str = ""
    models: tuple[str, ...] = ("gcn", "graphsage", "gat")
    edge_bytes: int = 0
    message: float = 0.0
    head: float = 0.0

    def python(self, environments: Path) -> Path | None:
        """None if it is not there, or lacks what this peer needs."""
        found = environments / self.home / "bin" / "python"
        lacks = self.needs and not list(environments.glob(f"{self.home}/lib/python*/site-packages/{self.needs}"))
        return None if lacks or not found.exists() else found


PEERS: Mapping[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer("dgl", "dgl", "with_dgl.py", edge_bytes=26, head=6),
        Peer("pyg", "pyg", "with_pyg.py", "edge_index", edge_bytes=40, message=1.7, head=10),
        Peer("pyg csr", "pyg", "with_pyg.py", "csr", models=("gcn", "graphsage"), edge_bytes=72),
        Peer("pyg sparse", "pyg", "with_pyg.py", "sparse", needs="torch_sparse", edge_bytes=125, head=10),
        Peer("torch", "pyg", "with_torch.py", models=("gcn", "graphsage"), edge_bytes=30),
    )
}
BASE_BYTES = 450_000_000
"""Of Python and torch."""


def peer_run(
    peer: Peer, recipe: Recipe, spec: JobSpec, *, num_epochs: int, seconds: float, environments: Path = ENVIRONMENTS
) -> Outcome:
    """seconds: of epochs, after which it stops; one is always finished, if it takes no longer than ten times that."""
    python = peer.python(environments)
    if spec.model.name not in peer.models:
        return Outcome(why=f"not measured with {spec.model.name}")
    if python is None:
        return Outcome(why="not installed")
    needed, there = forecast(peer, recipe, spec), psutil.virtual_memory().total
    if needed > MEMORY_SHARE * there:
        return Outcome(why=f"does not fit: about {needed / 1e9:.0f} GB of {there / 1e9:.0f}")
    threads = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    env = environment({"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "DGLBACKEND": "pytorch"})
    with tempfile.TemporaryDirectory() as place:
        job = _write_job(peer, recipe, spec, Path(place))
        job["num_epochs"], job["seconds"] = num_epochs, seconds
        path = Path(place) / "job.json"
        path.write_text(json.dumps(job))
        command = [str(python), str(PROGRAMS / peer.program), str(path)]
        done = run_watched(command, env, seconds=10 * seconds + 300)
    if done.code != 0:
        return Outcome(why=done.why)
    said = json.loads(done.stdout.splitlines()[-1])
    return Outcome(tuple(said["seconds"]), tuple(said["losses"]), said["peak_bytes"], said["kernels"], done.others)


def forecast(peer: Peer, recipe: Recipe, spec: JobSpec) -> float:
    """Bytes it will take at most, from what it keeps per edge and per vertex."""
    widths, heads = _widths(recipe, spec)
    per_edge = peer.edge_bytes + 4 * peer.message * sum(widths)
    if spec.model.name == "gat":
        per_edge += 4 * peer.head * sum(heads)
    per_vertex = 4 * (2 * recipe.num_features + 6 * sum(widths))
    return BASE_BYTES + per_edge * num_edges(recipe) + per_vertex * recipe.num_vertices


def _widths(recipe: Recipe, spec: JobSpec) -> tuple[list[int], list[int]]:
    """(output widths, heads) of the layers."""
    model = spec.model
    heads = [model.num_heads if model.name == "gat" else 1 for _ in model.hidden_sizes]
    hidden = [width * count for width, count in zip(model.hidden_sizes, heads, strict=True)]
    return [*hidden, recipe.num_classes], [*heads, 1]


def _write_job(peer: Peer, recipe: Recipe, spec: JobSpec, place: Path) -> dict[str, object]:
    model, training = spec.model, spec.training
    programs = derive_programs(spec, num_features=recipe.num_features, num_classes=recipe.num_classes)
    weights = initial_weights(programs.model.parameters(), training.seed, np.float32)
    np.savez(place / "weights.npz", **weights)
    return {
        "folder": str(write(recipe, generated_graphs())),
        "csr": str(csr_file(recipe)),
        "weights": str(place / "weights.npz"),
        "form": peer.form,
        "model": model.name,
        "num_heads": model.num_heads,
        "activation": model.activation,
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "lr": training.lr,
        "weight_decay": training.weight_decay,
    }

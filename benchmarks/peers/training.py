"""What all peers share: the job they are given, the loop, the clock, the word at the end.

Run by a peer's own Python, as `python with_dgl.py JOB.json`; nothing here is of this project but the files that its
benchmarks have written. Weights are named layer0.weight, ... and are [in, out].
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy, dropout, elu, relu

BEGAN = time.monotonic()
ACTIVATIONS = {"relu": relu, "elu": elu, "tanh": torch.tanh}


class Job:
    """form: of the adjacency, where a peer knows several. indptr, indices: the sources of each vertex's in-edges."""

    def __init__(self, path):
        self.settings = json.loads(Path(path).read_text())
        folder = Path(self.settings["folder"])
        self.form = self.settings["form"]
        self.heads, self.attention_dropout = self.settings["num_heads"], self.settings["attention_dropout"]
        self.features = torch.from_numpy(np.load(folder / "features.npy"))
        self.labels = torch.from_numpy(np.load(folder / "labels.npy"))
        self.train = torch.from_numpy(np.flatnonzero(np.load(folder / "masks.npy")[:, 0]))
        with np.load(self.settings["csr"]) as csr:
            self.indptr, self.indices = torch.from_numpy(csr["indptr"]), torch.from_numpy(csr["indices"])
        with np.load(self.settings["weights"]) as weights:
            self.weights = {name: torch.from_numpy(weights[name]) for name in weights.files}
        self.num_vertices = len(self.indptr) - 1
        self.num_layers = 1 + max(int(name[len("layer") : name.index(".")]) for name in self.weights)

    def weight(self, layer, name):
        return self.weights[f"layer{layer}.{name}"]

    @property
    def targets(self):
        """[E] int64, of each entry of `indices`."""
        return torch.repeat_interleave(torch.arange(self.num_vertices), self.indptr.diff())

    def with_self_loops(self):
        """(indptr, indices) int64, a loop first in every row; the graphs here have none of their own."""
        indptr = self.indptr + torch.arange(self.num_vertices + 1)
        indices = torch.empty(len(self.indices) + self.num_vertices, dtype=torch.int64)
        is_loop = torch.zeros(len(indices), dtype=torch.bool)
        is_loop[indptr[:-1]] = True
        indices[is_loop] = torch.arange(self.num_vertices)
        indices[~is_loop] = self.indices.long()
        return indptr, indices


def job():
    torch.manual_seed(0)
    return Job(sys.argv[1])


def set_(parameter, values):
    """The first weights: the same for everybody."""
    assert parameter.numel() == values.numel(), (parameter.shape, values.shape)
    parameter.data.copy_(values.reshape(parameter.shape))


def run(job, layers, call):
    """Trains `layers` and prints one line of JSON. call(layer, rows) -> rows of the next."""
    settings, activation = job.settings, ACTIVATIONS[job.settings["activation"]]
    rate = settings["dropout"]
    optimizer = torch.optim.Adam(layers.parameters(), lr=settings["lr"], weight_decay=settings["weight_decay"])
    prepared, seconds, losses = time.monotonic() - BEGAN, [], []
    labels = job.labels[job.train]
    while len(seconds) < settings["num_epochs"] and sum(seconds) < settings["seconds"]:
        began = time.monotonic()
        optimizer.zero_grad()
        rows = dropout(job.features, rate)
        for place, layer in enumerate(layers):
            rows = call(layer, rows)
            if place + 1 < len(layers):
                rows = dropout(activation(rows), rate)
        loss = cross_entropy(rows[job.train], labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.monotonic() - began)
    _say(seconds, losses, prepared)


def _say(seconds, losses, prepared):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    capability = torch.backends.cpu.get_cpu_capability()
    word = {
        "seconds": seconds,
        "losses": losses,
        "prepared_seconds": prepared,
        "peak_bytes": peak if sys.platform == "darwin" else peak * 1024,
        "kernels": f"torch {torch.__version__}, {capability}, {torch.get_num_threads()} threads",
    }
    print(json.dumps(word))

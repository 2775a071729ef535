"""The same trainings once more, plainly: the whole graph at once, SciPy's matrices, no intervals, programs or servers.

Vertices are in the cut's order, for a dropout mask belongs to an interval; masks and initial weights are those of the
project, all else is written here, from the papers' formulas. `dtype` float32 or float64.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from common.saga.masks import attention_key, keep_mask, scale, threshold
from graph_server.graph.folder_reader import GraphFolder
from local_cloud.prepare import PreparedJob

Array = np.ndarray
Weights = dict[str, Array]
Pull = Callable[[Array], tuple[Callable[[], Array], Weights]]
"""From the gradient of a layer's output to that of its input (when it is asked for), and those of its weights."""


@dataclass(frozen=True)
class Reference:
    model: str
    features: Array
    labels: Array
    train: Array
    """bool [N]: labelled and in the train mask."""
    sources: Array
    targets: Array
    bounds: Array
    hidden: tuple[int, ...]
    heads: int = 1
    activation: str = "relu"
    dropout: float = 0.0
    attention_dropout: float = 0.0
    seed: int = 0
    class_weights: Array | None = None
    edge_weights: Array | None = None
    """[E]; None: 1 each. A self loop that is added has 1."""

    def loss(self, weights: Weights, epoch: int) -> tuple[float, Weights]:
        """Of `train epoch` at these weights, and its gradients by full name."""
        logits, pulls = self.forward(weights, epoch)
        each = np.ones(logits.shape[1]) if self.class_weights is None else self.class_weights
        share = np.where(self.train, each[self.labels], 0)
        shifted = logits - logits.max(axis=1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        one_hot = np.eye(logits.shape[1])[self.labels]
        grad = (share / share.sum())[:, None] * (np.exp(log_p) - one_hot)
        grad, gradients = grad.astype(logits.dtype), {}
        for layer, pull in reversed(list(enumerate(pulls))):
            below, found = pull(grad)
            grad = below() if layer else grad
            gradients |= {f"layer{layer}.{name}": g for name, g in found.items()}
        return float(-(share * (log_p * one_hot).sum(axis=1)).sum() / share.sum()), gradients

    def forward(self, weights: Weights, epoch: int | None) -> tuple[Array, list[Pull]]:
        """Logits; epoch None: an evaluation, without dropout."""
        h, pulls = self.features.astype(next(iter(weights.values())).dtype), []
        for layer in range(len(self.hidden) + 1):
            prefix = f"layer{layer}."
            own = {n.removeprefix(prefix): w for n, w in weights.items() if n.startswith(prefix)}
            drop = self.mask(0, h, epoch) if layer == 0 else 1
            x, pull = MODELS[self.model](self, h, own, drop=drop, layer=layer, epoch=epoch)
            if layer < len(self.hidden):
                act, slope = ACTIVATIONS[self.activation]
                after = self.mask(layer + 1, x, epoch)
                h, pull = act(x) * after, behind(pull, slope(x) * after)
            else:
                h = x
            pulls.append(pull)
        return h, pulls

    def mask(self, layer: int, rows: Array, epoch: int | None) -> Array:
        """In the shape of `rows`: 0 and the scale, interval by interval."""
        if epoch is None or not threshold(self.dropout):
            return np.ones((1, 1), rows.dtype)
        kept = [
            keep_mask((int(count), rows.shape[1]), self.dropout, seed=self.seed, layer=layer, interval=i, epoch=epoch)
            for i, count in enumerate(np.diff(self.bounds))
        ]
        return np.concatenate(kept) * rows.dtype.type(scale(self.dropout))

    def matrix(self, norm: str, dtype: type) -> sp.csr_array:
        """[N, N] of w_uv · n_uv, row v over its in-edges, duplicates added up."""
        n, sources, targets = len(self.labels), self.sources, self.targets
        if norm == "sym":
            sources, targets = self.with_loops()
        w = np.ones(len(sources))
        if self.edge_weights is not None:
            w[: len(self.edge_weights)] = self.edge_weights
        a = sp.csr_array((w, (targets, sources)), shape=(n, n))
        degree = np.asarray(a.sum(axis=1)).reshape(-1)
        degree = np.where(degree > 0, degree, 1)
        left = {"sym": degree**-0.5, "mean": 1 / degree, "sum": np.ones(n)}[norm]
        right = left if norm == "sym" else np.ones(n)
        return sp.csr_array(sp.diags_array(left) @ a @ sp.diags_array(right)).astype(dtype)

    def with_loops(self) -> tuple[Array, Array]:
        loops = np.setdiff1d(np.arange(len(self.labels)), self.sources[self.sources == self.targets])
        return np.append(self.sources, loops), np.append(self.targets, loops)


def behind(pull: Pull, factor: Array) -> Pull:
    return lambda g: pull(g * factor)


ACTIVATIONS = {
    "relu": (lambda x: np.maximum(x, 0), lambda x: (x > 0).astype(x.dtype)),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))), lambda x: np.exp(np.minimum(x, 0))),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
}


def gcn(ref, h, w, *, drop, layer, epoch):
    a = ref.matrix("sym", h.dtype)
    x = (a @ h) * drop

    def pull(g):
        return lambda: a.T @ ((g @ w["weight"].T) * drop), {"weight": x.T @ g, "bias": g.sum(axis=0)}

    return x @ w["weight"] + w["bias"], pull


def graphsage(ref, h, w, *, drop, layer, epoch):
    a = ref.matrix("mean", h.dtype)
    x, own = (a @ h) * drop, h * drop

    def pull(g):
        def below():
            return a.T @ ((g @ w["weight_neighbour"].T) * drop) + (g @ w["weight_self"].T) * drop

        return below, {"weight_neighbour": x.T @ g, "weight_self": own.T @ g, "bias": g.sum(axis=0)}

    return x @ w["weight_neighbour"] + own @ w["weight_self"] + w["bias"], pull


def gin(ref, h, w, *, drop, layer, epoch):
    a = ref.matrix("sum", h.dtype)
    own = h * drop
    x = (a @ h) * drop + (1 + w["eps"]) * own
    inner = x @ w["weight1"] + w["bias1"]

    def pull(g):
        gi = (g @ w["weight2"].T) * (inner > 0)
        gx = gi @ w["weight1"].T
        grads = {"weight2": np.maximum(inner, 0).T @ g, "bias2": g.sum(axis=0), "weight1": x.T @ gi}
        grads |= {"bias1": gi.sum(axis=0), "eps": np.array([(gx * own).sum()], g.dtype)}
        return lambda: a.T @ (gx * drop) + (1 + w["eps"]) * gx * drop, grads

    return np.maximum(inner, 0) @ w["weight2"] + w["bias2"], pull


def gat(ref, h, w, *, drop, layer, epoch):
    heads, d = w["attention_source"].shape
    u, v = ref.with_loops()
    e, n, dtype = np.arange(len(u)), len(h), h.dtype
    into = sp.csr_array((np.ones(len(u), dtype), (v, e)), shape=(n, len(u)))  # sums edges per target
    out_of = sp.csr_array((np.ones(len(u), dtype), (u, e)), shape=(n, len(u)))
    x = h * drop
    z = (x @ w["weight"]).reshape(n, heads, d)
    s, t = (z * w["attention_source"]).sum(axis=2), (z * w["attention_target"]).sum(axis=2)
    score = s[u] + t[v]
    leak = np.where(score > 0, 1, 0.2).astype(dtype)
    top = np.full((n, heads), -np.inf, dtype)
    np.maximum.at(top, v, score * leak)
    raw = np.exp(score * leak - top[v])
    p = raw / (into @ raw)[v]
    m = edge_masks(ref, u, v, heads=heads, layer=layer, epoch=epoch).astype(dtype)
    total = into @ ((p * m)[:, :, None] * z[u]).reshape(len(u), heads * d)

    def pull(g):
        ge = g.reshape(n, heads, d)[v]
        dp = m * (ge * z[u]).sum(axis=2)
        dscore = p * (dp - (into @ (p * dp))[v]) * leak
        ds, dt = out_of @ dscore, into @ dscore
        dz = (out_of @ ((p * m)[:, :, None] * ge).reshape(len(u), heads * d)).reshape(n, heads, d)
        dz = dz + ds[:, :, None] * w["attention_source"] + dt[:, :, None] * w["attention_target"]
        grads = {"attention_source": (ds[:, :, None] * z).sum(axis=0), "bias": g.sum(axis=0)}
        grads["attention_target"] = (dt[:, :, None] * z).sum(axis=0)
        dz = dz.reshape(n, heads * d)
        return lambda: (dz @ w["weight"].T) * drop, grads | {"weight": x.T @ dz}

    return total + w["bias"], pull


def edge_masks(ref: Reference, u: Array, v: Array, *, heads: int, layer: int, epoch: int | None) -> Array:
    """[E, heads] of 0 and the scale."""
    limit = threshold(ref.attention_dropout)
    if epoch is None or not limit:
        return np.ones((len(u), heads))
    kept = np.empty((len(u), heads))
    for head in range(heads):
        key = np.uint64(attention_key(ref.seed, epoch, layer, head))
        word = splitmix64(splitmix64(key + u.astype(np.uint64)) + v.astype(np.uint64))
        kept[:, head] = ((word >> np.uint64(8 * (head % 8))) & np.uint64(255)) >= limit
    return kept * scale(ref.attention_dropout)


def splitmix64(x: Array) -> Array:
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


MODELS = {"gcn": gcn, "graphsage": graphsage, "gin": gin, "gat": gat}


def adam(
    ref: Reference, weights: Weights, *, epochs: int, lr: float, weight_decay: float
) -> tuple[list[float], Weights]:
    """Losses of each epoch, and the weights after the last."""
    w, losses = dict(weights), []
    mean, square = ({n: np.zeros_like(x) for n, x in w.items()} for _ in range(2))
    for epoch in range(1, epochs + 1):
        loss, gradients = ref.loss(w, epoch)
        losses.append(loss)
        for n in w:
            g = gradients[n] + weight_decay * w[n]
            mean[n] = 0.9 * mean[n] + 0.1 * g
            square[n] = 0.999 * square[n] + 0.001 * g * g
            m, v = mean[n] / (1 - 0.9**epoch), square[n] / (1 - 0.999**epoch)
            w[n] = w[n] - lr * m / (np.sqrt(v) + 1e-8)
    return losses, w


def reference_of(job: PreparedJob) -> Reference:
    """The same problem, its arrays read from the graph folder."""
    folder, model = job.folder, job.spec.model
    labels, masks, sources, degree = (_whole(folder, name) for name in ("labels", "masks", "sources", "indptr"))
    if labels.ndim == 2:  # of another task: only the logits are asked for
        labels = np.zeros(len(labels), np.int64)
    return Reference(
        model=model.name,
        features=_whole(folder, "features"),
        labels=np.maximum(labels, 0),
        train=(labels >= 0) & ((masks & 1) > 0),
        sources=sources,
        targets=np.repeat(np.arange(len(labels)), degree),
        bounds=folder.bounds,
        hidden=model.hidden_sizes,
        heads=model.num_heads,
        activation=model.activation,
        dropout=model.dropout,
        attention_dropout=model.attention_dropout,
        seed=job.spec.training.seed,
        class_weights=np.array(job.loss.class_weights),
        edge_weights=_whole(folder, "weights") if folder.manifest.weighted else None,
    )


def _whole(folder: GraphFolder, name: str) -> Array:
    """One array of all intervals; of indptr the row lengths."""
    arrays = [np.asarray(folder.array(interval, name)) for interval in range(folder.num_intervals)]
    return np.concatenate([np.diff(array) for array in arrays] if name == "indptr" else arrays)

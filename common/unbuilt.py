"""What the schema knows and this version does not do yet: one row per key. Building a part deletes its rows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Unbuilt:
    """A key that is refused when somebody sets it, unless the value is one that already works."""

    key: str
    part: str
    """What is missing, in words."""
    works: tuple[object, ...] = ()
    """Values that pass; empty: none does."""
    refused_prefix: str = ""
    """Refuse only text that begins so; `works` is then not looked at."""

    def refuses(self, value: object) -> bool:
        if self.refused_prefix:
            return isinstance(value, str) and value.startswith(self.refused_prefix)
        return value not in self.works


_RESTARTS = "checkpoints and restarts"
_HETEROGENEOUS = "picking a part of a heterogeneous file"

UNBUILT = (
    Unbuilt("dataset.path", "datasets on S3", refused_prefix="s3://"),
    Unbuilt("dataset.edge_weight", "edge weights", works=(None,)),
    Unbuilt("dataset.features", "made-up features", works=("file",)),
    Unbuilt("dataset.task", "multi-label classification and regression", works=("auto", "multi_class")),
    Unbuilt("dataset.allow_pickle", "unrestricted pickle", works=(False,)),
    Unbuilt("dataset.edge_type", _HETEROGENEOUS, works=(None,)),
    Unbuilt("dataset.node_type", _HETEROGENEOUS, works=(None,)),
    Unbuilt("training.mode", "asynchronous training", works=("sync", "pipe")),
    Unbuilt("training.staleness", "asynchronous training"),
    Unbuilt("training.weight_update", "asynchronous training", works=("epoch",)),
    Unbuilt("training.async_until", "asynchronous training", works=(None,)),
    Unbuilt("training.precision", "mixed precision", works=("float32",)),
    Unbuilt("training.metric", "metrics other than accuracy", works=("auto", "accuracy")),
    Unbuilt("training.deterministic", "pinned CPU kernels", works=(False,)),
    Unbuilt("cluster.max_restarts", _RESTARTS),
    Unbuilt("cluster.spot", "training on AWS", works=(False,)),
    Unbuilt("backend.name", "the hybrid backend", works=("auto", "local_cpu", "lambda")),
    Unbuilt("backend.min_lambdas", "tuning the number of leases", works=(1,)),
    Unbuilt("backend.lease_idle_ms", "ending idle leases", works=("auto",)),
    Unbuilt("budget.max_cost_usd", "the budget", works=(None,)),
    Unbuilt("budget.max_runtime_seconds", "the budget", works=(None,)),
    Unbuilt("output.path", "results on S3", refused_prefix="s3://"),
    Unbuilt("output.save_model_frequency", _RESTARTS),
    Unbuilt("output.checkpoint_seconds", _RESTARTS),
    Unbuilt("output.keep_checkpoints", _RESTARTS),
)

"""The one schema of a training job, the same for this machine and for the cloud.

Frozen, strict, complete: every key with its default, its unit in the name and its meaning beneath. `auto` stays
`auto` here: who has the graph decides. Nothing under cluster, backend, budget or output changes a bit of any weights
version in sync or pipe (a budget may end the run earlier); what can lies under dataset, cut, model, training.

Which keys were given is part of the meaning (`staleness`): hand a spec on as `model_dump(exclude_unset=True)`.
"""

import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from common.spec_values import ClassWeights, Conflict, Real, Switch, Text, Whole, Widths

_SEED = Whole(0, 2**63 - 1)
# A mask byte is dropped when it is below round(256 p): a p above this would drop every byte.
_DROPOUT = Real(at_least=0, at_most=0.998)
JOB_NAME = "[A-Za-z0-9][A-Za-z0-9._-]{0,62}"


class Group(BaseModel):
    """A frozen group of keys; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class SplitSpec(Group):
    """The fractions of the labelled vertices in each mask."""

    train: Annotated[float, Real(above=0, at_most=1)] = 0.6
    """Fraction of the labelled vertices to train on."""
    valid: Annotated[float, Real(at_least=0, at_most=1)] = 0.2
    """Fraction that chooses the best weights version."""
    test: Annotated[float, Real(at_least=0, at_most=1)] = 0.2
    """Fraction that is only reported."""

    @model_validator(mode="after")
    def _at_most_everything(self) -> Self:
        # Fractions such as 0.7 + 0.2 + 0.1 miss 1 by a rounding.
        if (total := self.train + self.valid + self.test) > 1 + 1e-9:
            raise Conflict(
                ("dataset.split.train", "dataset.split.valid", "dataset.split.test"),
                why=f"the fractions add up to {total:g}, and a vertex is in one mask only",
                fix="make them add up to 1 or less",
            )
        return self


class DatasetSpec(Group):
    """What is trained on, and how it is read."""

    path: Annotated[str, Text("a bundled name, a folder, a file or s3://...")]
    """A bundled name, a folder, a file, or s3://... The whole group may be just this text."""
    format: Annotated[str, Text("auto, or the name of a format")] = "auto"
    """auto: detected by content; or a name in `graph_server/datasets/`."""
    directed: Annotated[bool | Literal["auto"], Switch(("auto",))] = "auto"
    """true: edges as they stand; false: missing reverse edges are added and counted; auto: false if every edge has its
    reverse or the format says so, else an error that shows the reciprocity and asks."""
    dedup: Annotated[bool | Literal["auto"], Switch(("auto",))] = "auto"
    """Whether a repeated edge counts once; auto: yes for formats whose lists are sets (Planetoid, LINQS), while edge
    lists keep duplicates and report them."""
    edge_weight: Annotated[str | None, Text("the name of a column", null=True)] = None
    """Name of a column of weights, which multiply the rows that are added up; null: a weight column is reported and
    not used."""
    features: Literal["file", "degree", "one_hot"] = "file"
    """Where the vertices' features come from; degree: the in-degree, one column; one_hot: one column for each vertex,
    at most 20,000 of them."""
    normalize_features: Literal["auto", "none", "row", "standard"] = "auto"
    """row: rows add up to 1; standard: columns with mean 0 and variance 1; auto: what the reader declares usual (row
    for Planetoid, LINQS, gnn-benchmark; standard for GraphSAINT and for degrees), else none; said in the report."""
    split: SplitSpec = Field(default_factory=SplitSpec)
    """Only when the file has no masks; stratified by class, seeded by `split_seed`."""
    split_index: Annotated[int, Whole(0)] = 0
    """Which column of 2-D masks."""
    nan: Literal["error", "zero", "mean"] = "error"
    """What becomes of NaN features."""
    task: Literal["auto", "multi_class", "multi_label", "regression"] = "auto"
    """What is learnt: one class, any number of labels, or numbers; auto: from the labels. A one-hot matrix is
    multi_class, other columns of 0 and 1 are multi_label, numbers that are not whole are a regression; said in the
    report."""
    split_seed: Annotated[int, _SEED] = 0
    """Seed of the split; never `training.seed`."""
    drop_unknown_edges: Annotated[bool, Switch()] = False
    """true: edges to vertices that are not listed are dropped and counted, instead of an error."""
    negative_ids: Annotated[bool, Switch()] = False
    """true: vertices may have negative numbers for ids, and are counted; such an id is usually an overflow or a mark
    for 'missing', and refused."""
    allow_pickle: Annotated[bool, Switch()] = False
    """true: Python objects in .npz are read too, by a restricted reader that builds arrays and matrices and runs
    nothing."""
    edge_type: Annotated[str | None, Text("the name of an edge type", null=True)] = None
    """Pick the homogeneous part of a heterogeneous file: its edges."""
    node_type: Annotated[str | None, Text("the name of a node type", null=True)] = None
    """Pick the homogeneous part of a heterogeneous file: its vertices."""

    @model_validator(mode="before")
    @classmethod
    def _text_is_the_path(cls, values: object) -> object:
        return {"path": values} if isinstance(values, str) else values


class CutSpec(Group):
    """How vertices become intervals: part of the result, never of the machine."""

    num_intervals: Annotated[int | Literal["auto"], Whole(1, 4096, words=("auto",))] = "auto"
    """Vertex intervals of the whole graph; auto: from the graph and the model alone, so that the widest task input has
    at most 8 MB; 2 if it has 2 MB in all, and no more below 50,000 edges; up to 16 an even number."""
    method: Literal["stream", "balanced", "fennel", "metis", "range", "hash"] = "stream"
    """stream: linear deterministic greedy in 5 passes, edges balanced; balanced: the same, train vertices balanced too;
    fennel: in 5 passes by Fennel's price of a vertex; metis: by pymetis, no fallback; range: in file order; hash: at
    random."""
    cut_seed: Annotated[int, _SEED] = 0
    """Seed of the cut; never `training.seed`."""


class ModelSpec(Group):
    """What is trained."""

    name: Annotated[str, Text("the name of a model")] = "gcn"
    """A file in `common/models/`."""
    hidden_size: Annotated[int | tuple[int, ...], Widths()] = 16
    """Width of the hidden layers, a number or a list with one for each; with attention it is per head: 8 with 8 heads
    is 64 wide. A list fixes `num_layers` = its length + 1."""
    num_layers: Annotated[int, Whole(1)] = 2
    """Layers, the last one included."""
    num_heads: Annotated[int, Whole(1)] = 8
    """Attention models only: heads of each hidden layer, concatenated; the last layer has one head."""
    activation: Literal["relu", "elu", "tanh"] = "relu"
    """Between layers."""
    dropout: Annotated[float, _DROPOUT] = 0.5
    """Fraction dropped of the input and of each hidden layer, in steps of 1/256."""
    attention_dropout: Annotated[float, _DROPOUT] = 0.0
    """Attention models only: fraction of the edges' attention dropped."""

    @property
    def hidden_sizes(self) -> tuple[int, ...]:
        """[num_layers - 1] one width per hidden layer."""
        if isinstance(self.hidden_size, tuple):
            return self.hidden_size
        return (self.hidden_size,) * (self.num_layers - 1)

    @model_validator(mode="before")
    @classmethod
    def _a_list_fixes_the_layers(cls, values: object) -> object:
        if not isinstance(values, dict) or "num_layers" in values:
            return values
        num_layers = layers_of(values.get("hidden_size"))
        return values if num_layers is None else {**values, "num_layers": num_layers}

    @model_validator(mode="after")
    def _one_width_per_hidden_layer(self) -> Self:
        if len(self.hidden_sizes) != self.num_layers - 1:
            raise Conflict(
                ("model.hidden_size", "model.num_layers"),
                why=f"a list of {len(self.hidden_sizes)} hidden widths makes {len(self.hidden_sizes) + 1} layers",
                fix="remove num_layers, or give one width for each of its hidden layers",
            )
        return self


class TrainingSpec(Group):
    """How it is trained."""

    num_epochs: Annotated[int, Whole(1)] = 200
    """Passes over the whole graph."""
    lr: Annotated[float, Real(above=0)] = 0.01
    """Learning rate."""
    optimizer: Literal["sgd", "adam", "adamw"] = "adam"
    """adam and sgd add weight decay to the gradient, adamw keeps it apart."""
    momentum: Annotated[float, Real(at_least=0, below=1)] = 0.0
    """sgd only."""
    weight_decay: Annotated[float, Real(at_least=0)] = 5e-4
    """On all parameters, biases included."""
    mode: Literal["sync", "pipe", "async"] = "pipe"
    """sync: every stage waits for all intervals; pipe: a Gather waits for the rows it reads, same result; async: rows
    may be stale."""
    staleness: Annotated[int, Whole(0)] = 0
    """async only, in epochs: how old a row may be beyond the last epoch's; with another mode it is an error."""
    weight_update: Literal["epoch", "interval"] = "epoch"
    """epoch: one optimizer step per epoch; interval: one per interval and epoch, async only."""
    weight_prediction: Annotated[bool, Switch()] = True
    """async only, with weight_update epoch: weights that lack updates are carried on along the newest step; false: as
    in the paper; with another mode it is an error."""
    async_until: Annotated[float | None, Real(null=True)] = None
    """Valid metric at which async becomes pipe."""
    precision: Literal["float32", "mixed"] = "float32"
    """mixed: rows a weighted sum reads are rounded once, when published, to bfloat16 and summed in float32; never
    features, weights, gradients of weights, tensor tasks or attention."""
    seed: Annotated[int, _SEED] = 0
    """Seed of the initial weights and of dropout."""
    eval_frequency: Annotated[int | Literal["auto"], Whole(0, words=("auto",))] = "auto"
    """In epochs; auto: 1 in sync and pipe, 10 in async; 0: only at the end."""
    use_early_stop: Annotated[bool, Switch()] = False
    """Stop when the valid metric no longer improves."""
    early_stop_rounds: Annotated[int, Whole(1)] = 20
    """Evaluations without improvement before it stops."""
    early_stop_min_delta: Annotated[float, Real(at_least=0)] = 0.0
    """What the valid metric must gain to count as improvement."""
    target_metric: Annotated[float | None, Real(null=True)] = None
    """Stop when the valid metric reaches it."""
    metric: Literal["auto", "accuracy", "roc_auc", "rmse", "f1_micro", "f1_macro", "average_precision", "mae"] = "auto"
    """What the best weights are chosen by, as scikit-learn means it; auto: accuracy; roc_auc for multi_label; rmse for
    regression, which has mae besides and no other."""
    class_weights: Annotated[Literal["balanced"] | tuple[float, ...] | None, ClassWeights()] = None
    """Weight of each class in the loss, in the order of the sorted labels, or of each column of a multi_label;
    balanced: inverse to the share of the train entries. Not for a regression."""
    deterministic: Annotated[bool, Switch()] = False
    """true: the CPU kernels of OpenBLAS and NumPy are pinned in every role, for the same bits across CPU types; mixed
    architectures are refused."""
    hoist: Annotated[bool, Switch()] = True
    """A Gather over a constant input runs once, at load; false: in every epoch, as in the paper."""
    commute: Annotated[bool, Switch()] = True
    """A layer that narrows multiplies before it gathers; false: after, as in the paper."""

    @model_validator(mode="after")
    def _async_keys_need_async(self) -> Self:
        if self.mode == "async":
            return self
        if "staleness" in self.model_fields_set:
            why = f"in {self.mode} mode a Gather waits for this epoch's rows, so a bound has no effect"
            raise _needs_async("staleness", why)
        if "weight_prediction" in self.model_fields_set:
            raise _needs_async("weight_prediction", f"in {self.mode} mode no epoch begins before all updates are there")
        if self.weight_update == "interval":
            raise _needs_async("weight_update", f"{self.mode} mode makes one optimizer step per epoch")
        if self.async_until is not None:
            raise _needs_async("async_until", f"{self.mode} mode has no asynchronous epochs to end")
        return self

    @model_validator(mode="after")
    def _momentum_is_for_sgd(self) -> Self:
        if self.momentum and self.optimizer != "sgd":
            raise Conflict(
                ("training.momentum", "training.optimizer"),
                why=f"{self.optimizer} keeps its own moving averages and reads no momentum",
                fix="remove momentum, or set optimizer: sgd",
            )
        return self

    @model_validator(mode="after")
    def _a_stop_needs_evaluations(self) -> Self:
        watched = "use_early_stop" if self.use_early_stop else "target_metric"
        if self.eval_frequency == 0 and (self.use_early_stop or self.target_metric is not None):
            raise Conflict(
                (f"training.{watched}", "training.eval_frequency"),
                why="with eval_frequency 0 the valid metric is not known before the end",
                fix=f"remove {watched}, or set eval_frequency: 1",
            )
        return self


class ClusterSpec(Group):
    """How many servers, and which."""

    num_graph_servers: Annotated[int, Whole(1)] = 1
    """Servers that hold the graph."""
    num_parameter_servers: Annotated[int, Whole(1)] = 1
    """Servers that own the weights."""
    max_restarts: Annotated[int, Whole(0)] = 3
    """How often a job that lost a server starts again from its last checkpoint."""
    instance_type: Annotated[str, Text("the name of an EC2 instance type", "[a-z0-9-]+[.][a-z0-9-]+")] = "c7g.2xlarge"
    """EC2 instance type of the graph servers; cloud only."""
    spot: Annotated[bool, Switch()] = False
    """Spot instances; cloud only."""


class BackendSpec(Group):
    """Where tensor tasks run."""

    name: Literal["auto", "lambda", "local_cpu", "hybrid"] = "auto"
    """auto: local_cpu on one machine, hybrid on AWS."""
    min_lambdas: Annotated[int, Whole(1)] = 1
    """Leases at the least, per job."""
    max_lambdas: Annotated[int, Whole(1)] = 100
    """Leases at the most, per job."""
    memory_mb: Annotated[int, Whole(128, 10240)] = 1769
    """Memory of a function, which sets its share of a CPU: 1769 MB is one."""
    lease_max_tasks: Annotated[int, Whole(1)] = 10_000
    """A lease ends after so many tasks; 1 is the paper's one task per invocation."""
    lease_seconds: Annotated[int, Whole(1, 840)] = 240
    """A lease ends after this. Far below Lambda's 900 s, below every idle time-out on the way."""
    lease_idle_ms: Annotated[int | Literal["auto"], Whole(0, words=("auto",))] = "auto"
    """A lease without tasks lives at least so long, and longer if a cold start with its constants sent again would
    take longer."""
    relaunch_ratio: Annotated[float, Real(above=1)] = 5.0
    """A task is relaunched after this many times its usual time."""
    relaunch_floor_ms: Annotated[int, Whole(0)] = 500
    """But never earlier than this."""

    @model_validator(mode="after")
    def _min_is_at_most_max(self) -> Self:
        if self.min_lambdas > self.max_lambdas:
            raise Conflict(
                ("backend.min_lambdas", "backend.max_lambdas"),
                why="the least number of leases is above the largest",
                fix="make min_lambdas at most max_lambdas",
            )
        return self


class BudgetSpec(Group):
    """When to stop for money or time; a checkpoint is kept."""

    max_cost_usd: Annotated[float | None, Real(above=0, null=True)] = None
    """Stop before the job's cost passes this."""
    max_runtime_seconds: Annotated[int | None, Whole(1, null=True)] = None
    """Stop before the job's time passes this."""


class OutputSpec(Group):
    """Where results go."""

    path: Annotated[str, Text("a folder or s3://...")] = "runs/"
    """Folder of the run folders, one per job; or s3://..."""
    save_model_frequency: Annotated[int, Whole(1)] = 10
    """A checkpoint every so many epochs."""
    checkpoint_seconds: Annotated[int, Whole(1)] = 600
    """And after so many seconds."""
    keep_checkpoints: Annotated[int, Whole(1)] = 2
    """Older ones are deleted."""


class JobSpec(Group):
    """A training job."""

    version: Annotated[int, Whole(1, 1)] = 1
    """Of this schema."""
    name: Annotated[str, Text("1 to 63 letters, digits, '.', '_' or '-', the first a letter or digit", JOB_NAME)] = (
        "job"
    )
    """First part of the job's id; where it is not given, the file's name without its ending."""
    dataset: DatasetSpec
    cut: CutSpec = Field(default_factory=CutSpec)
    model: ModelSpec = Field(default_factory=ModelSpec)
    training: TrainingSpec = Field(default_factory=TrainingSpec)
    cluster: ClusterSpec = Field(default_factory=ClusterSpec)
    backend: BackendSpec = Field(default_factory=BackendSpec)
    budget: BudgetSpec = Field(default_factory=BudgetSpec)
    output: OutputSpec = Field(default_factory=OutputSpec)


def layers_of(hidden_size: object) -> int | None:
    """The num_layers that a hidden_size as given (list or flag text) fixes; None when it is one number or wrong."""
    try:
        widths = Widths().check(hidden_size)
    except ValueError:
        return None
    return len(widths) + 1 if isinstance(widths, tuple) else None


def not_to_be_given(spec: JobSpec) -> frozenset[str]:
    """Keys whose default holds but which this spec may not spell out: giving them would be a Conflict."""
    return (
        frozenset()
        if spec.training.mode == "async"
        else frozenset({"training.staleness", "training.weight_prediction"})
    )


def job_name_from(text: str) -> str:
    """A job name out of any text, such as a file's name: what is not allowed becomes '-'."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-")[:63] or "job"


def _needs_async(key: str, why: str) -> Conflict:
    return Conflict((f"training.{key}", "training.mode"), why=why, fix=f"remove {key}, or set mode: async")

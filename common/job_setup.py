"""What every role derives from a job spec and a few facts of its graph: the model, its programs, the loss."""

from collections.abc import Sequence

import msgspec

from common import plugins
from common.errors import DatasetError, ModelError, SpecError
from common.job_spec import JobSpec
from common.saga.gathers import AttentionSum, WeightedSum
from common.saga.layer import Model, ModelOptions
from common.saga.loss import LossOptions, balanced_weights, loss_options
from common.saga.program import Programs, derive
from common.saga.tasks import METRICS, Metric, Task
from common.task_job import MODELS, TaskJob


class GraphFacts(msgspec.Struct, frozen=True):
    """Of the whole graph, from the graph folder's manifest."""

    num_features: int
    num_classes: int
    num_intervals: int
    num_valid: int
    train_class_counts: tuple[int, ...]
    """Train entries of each class, or of each output."""
    fingerprint: str = ""
    """Of the dataset's content and how it is read."""
    cut_sha256: str = ""
    train_per_interval: tuple[int, ...] = ()
    """Train entries; counted only for one optimizer step per interval."""
    task: Task = "multi_class"


def model_options(spec: JobSpec, *, num_features: int, num_classes: int) -> ModelOptions:
    return ModelOptions(
        num_features=num_features,
        num_classes=num_classes,
        hidden_sizes=spec.model.hidden_sizes,
        num_heads=spec.model.num_heads,
        activation=spec.model.activation,
        dropout=spec.model.dropout,
        attention_dropout=spec.model.attention_dropout,
    )


def declare_model(spec: JobSpec, *, num_features: int, num_classes: int) -> Model:
    """Raises SpecError for an unknown model, ModelError if its parameters' names repeat."""
    options = model_options(spec, num_features=num_features, num_classes=num_classes)
    model: Model = plugins.load(MODELS, spec.model.name).build(options)
    names = [parameter.name for parameter in model.parameters()]
    if len(set(names)) != len(names):
        raise ModelError(f"parameter names of {model.name} repeat: {sorted(names)}", fix="name them apart")
    return model


def derive_programs(spec: JobSpec, *, num_features: int, num_classes: int, task: Task = "multi_class") -> Programs:
    """num_classes: outputs of the last layer. Raises SpecError if the task has no such metric, if there is nothing to
    round, or no place for weights of edges."""
    model, training = declare_model(spec, num_features=num_features, num_classes=num_classes), spec.training
    if spec.dataset.edge_weight is not None:
        check_edge_weights(model)
    metric, rounds = metric_of(spec, task), _rounds_rows(spec, model)
    return derive(model, hoist=training.hoist, commute=training.commute, task=task, metric=metric, rounds_rows=rounds)


def check_edge_weights(model: Model, negative: str = "") -> None:
    """Raises SpecError for a model that has no place for them, DatasetError for negative ones under a root or a mean.

    negative: where such weights stand, in words; nothing where there are none
    """
    if any(isinstance(layer.gather, AttentionSum) for layer in model.layers):
        raise SpecError(
            f"weights of edges with {model.name}",
            why="attention computes what each edge counts, and has no place for a weight of its own",
            fix="choose gcn, graphsage or gin, or leave dataset.edge_weight away",
        )
    norms = {layer.gather.norm for layer in model.layers if isinstance(layer.gather, WeightedSum)}
    if negative and norms != {"sum"}:
        raise DatasetError(
            f"{negative}, and {model.name} divides by the sum of a vertex's weights",
            why="with negative weights that sum may be zero or less, and has no root",
            fix="choose gin, which only adds up, or make the weights positive",
        )


def _rounds_rows(spec: JobSpec, model: Model) -> bool:
    if spec.training.precision == "mixed" and not any(isinstance(x.gather, WeightedSum) for x in model.layers):
        raise SpecError(
            f"training.precision = mixed with {model.name}",
            why="attention is not rounded: bfloat16 has 8 bits, too few for its scores",
            fix="leave precision at float32, or choose gcn, graphsage or gin",
        )
    return spec.training.precision == "mixed"


def metric_of(spec: JobSpec, task: Task) -> Metric:
    wanted, known = spec.training.metric, METRICS[task]
    if wanted == "auto":
        return known[0]
    if wanted not in known:
        raise SpecError(
            f"training.metric = {wanted}, and the task is {task}",
            why=f"{task} is judged by {', '.join(known)}",
            fix="choose one of these, leave it at auto, or set dataset.task",
        )
    return wanted


def loss_of(spec: JobSpec, train_class_counts: Sequence[int], task: Task = "multi_class") -> LossOptions:
    """Raises SpecError if class_weights do not fit the classes, or leave nothing to learn from."""
    counts, given = tuple(train_class_counts), spec.training.class_weights
    if given is not None and task == "regression":
        raise SpecError(
            "class_weights with a regression",
            why="numbers have no classes: every labelled entry counts alike",
            fix="remove training.class_weights",
        )
    if given is None:
        weights = tuple(1.0 for _ in counts)
    elif given == "balanced":
        weights = balanced_weights(counts)
    else:
        weights = tuple(float(w) for w in given)
    if len(weights) != len(counts):
        raise SpecError(
            f"class_weights has {len(weights)} numbers",
            why=f"the dataset has {len(counts)} classes",
            fix="give one weight per class, in the order of the sorted labels",
        )
    options = loss_options(weights, counts, task=task, metric=metric_of(spec, task))
    if options.total_weight <= 0:
        raise SpecError(
            "the weights of all train entries add up to 0",
            why="the loss is divided by their sum",
            fix="give a class that has train vertices a weight above 0",
        )
    return options


def task_job(spec: JobSpec, facts: GraphFacts) -> TaskJob:
    """The same, for functions: plain data."""
    options = model_options(spec, num_features=facts.num_features, num_classes=facts.num_classes)
    training, loss = spec.training, loss_of(spec, facts.train_class_counts, facts.task)
    return TaskJob(spec.model.name, options, training.hoist, training.commute, loss, training.seed)

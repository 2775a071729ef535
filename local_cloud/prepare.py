"""From a job spec to what every role starts from: the graph folder, the stage programs, the loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common import plugins
from common.errors import ModelError, SpecError
from common.job_spec import JobSpec
from common.saga.cost import tensor_width
from common.saga.layer import Model, ModelOptions
from common.saga.loss import LossOptions, balanced_weights, loss_options
from common.saga.program import Kind, Programs, derive
from graph_server.graph.cache import load_or_build
from graph_server.graph.csr import EdgeList
from graph_server.graph.cut import make_cut, num_intervals_auto
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.graph_folder import write_graph_folder
from graph_server.ingest.dataset import Dataset, prepare
from local_cloud.load_job import MODELS
from local_cloud.observer import Observer


@dataclass(frozen=True)
class PreparedJob:
    spec: JobSpec
    folder: GraphFolder
    programs: Programs
    loss: LossOptions

    @property
    def num_intervals(self) -> int:
        return self.folder.num_intervals


def prepare_job(spec: JobSpec, *, base_folder: Path, cache_dir: Path, observer: Observer) -> PreparedJob:
    """Reads the dataset and cuts it, unless the cache holds the same already."""
    observer.doing("reading the dataset")
    dataset = prepare(spec.dataset, base_folder)
    for text in _said(dataset.report, "warnings"):
        observer.note(text)
    programs = derive_programs(spec, num_features=dataset.features.shape[1], num_classes=dataset.num_classes)
    observer.doing("cutting the graph into intervals")
    folder = GraphFolder.open(_graph_folder(spec, dataset, programs, cache_dir))
    return PreparedJob(spec, folder, programs, loss_of(spec, folder.manifest.train_class_counts))


def derive_programs(spec: JobSpec, *, num_features: int, num_classes: int) -> Programs:
    model = declare_model(spec, num_features=num_features, num_classes=num_classes)
    return derive(model, hoist=spec.training.hoist, commute=spec.training.commute)


def declare_model(spec: JobSpec, *, num_features: int, num_classes: int) -> Model:
    options = ModelOptions(
        num_features=num_features,
        num_classes=num_classes,
        hidden_sizes=spec.model.hidden_sizes,
        num_heads=spec.model.num_heads,
        activation=spec.model.activation,
        dropout=spec.model.dropout,
        attention_dropout=spec.model.attention_dropout,
    )
    model: Model = plugins.load(MODELS, spec.model.name).build(options)
    names = [parameter.name for parameter in model.parameters()]
    if len(set(names)) != len(names):
        raise ModelError(f"parameter names of {model.name} repeat: {sorted(names)}", fix="name them apart")
    return model


def loss_of(spec: JobSpec, train_class_counts: Sequence[int]) -> LossOptions:
    """Raises SpecError if class_weights do not fit the classes, or leave nothing to learn from."""
    counts, given = tuple(train_class_counts), spec.training.class_weights
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
    options = loss_options(weights, counts)
    if options.total_weight <= 0:
        raise SpecError(
            "the weights of all train entries add up to 0",
            why="the loss is divided by their sum",
            fix="give a class that has train vertices a weight above 0",
        )
    return options


def widest_task_input(programs: Programs) -> int:
    """Values per row of the tensor task that reads most."""
    tasks = [step for step in programs.train.steps if step.kind is Kind.APPLY]
    return max(sum(tensor_width(programs.model, name) for name in step.reads) for step in tasks)


def _graph_folder(spec: JobSpec, dataset: Dataset, programs: Programs, cache_dir: Path) -> Path:
    edges = EdgeList(dataset.sources, dataset.targets, dataset.num_nodes)
    wanted = spec.cut.num_intervals
    if wanted == "auto":
        without_loops = int(np.count_nonzero(dataset.sources != dataset.targets))
        wanted = num_intervals_auto(dataset.num_nodes, without_loops, widest_task_input(programs))
    options: dict[str, Any] = {"method": spec.cut.method, "seed": spec.cut.cut_seed, "num_intervals": wanted}

    def build(path: Path) -> None:
        cut = make_cut(edges, wanted, method=spec.cut.method, seed=spec.cut.cut_seed)
        write_graph_folder(dataset, cut, path)

    return load_or_build(dataset.fingerprint, options, build, cache_dir=cache_dir)


def _said(report: Any, key: str) -> Sequence[str]:
    return tuple(report.get(key, ()))

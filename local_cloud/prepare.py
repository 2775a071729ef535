"""From a job spec to what every role starts from: the graph folder, the stage programs, the loss."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.job_setup import GraphFacts, check_edge_weights, derive_programs, loss_of
from common.job_spec import JobSpec
from common.saga.cost import tensor_width
from common.saga.epoch_work import Sizes
from common.saga.loss import TRAIN, LossOptions
from common.saga.program import Kind, Programs
from graph_server.graph.cache import load_or_build
from graph_server.graph.csr import EdgeList
from graph_server.graph.cut import make_cut, num_intervals_auto
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.graph_folder import write_graph_folder
from graph_server.graph.truth import count_entries
from graph_server.ingest.dataset import Dataset, prepare
from local_cloud.given_folder import as_it_is, given_folder
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

    @property
    def sizes(self) -> Sizes:
        manifest = self.folder.manifest
        return Sizes(
            num_nodes=manifest.num_nodes,
            num_edges=manifest.num_edges,
            num_intervals=self.num_intervals,
            num_features=manifest.num_features,
            num_classes=manifest.num_classes,
            task=manifest.task,
            weighted=manifest.weighted,
        )

    @property
    def facts(self) -> GraphFacts:
        return graph_facts(self.folder, per_interval=self.spec.training.weight_update == "interval")


def graph_facts(folder: GraphFolder, *, per_interval: bool = False) -> GraphFacts:
    """per_interval: count each interval's train entries, too, for which their masks are read."""
    manifest = folder.manifest
    return GraphFacts(
        num_features=manifest.num_features,
        num_classes=manifest.num_classes,
        num_intervals=folder.num_intervals,
        num_valid=int(manifest.report.get("valid", 0)),  # type: ignore[call-overload]
        train_class_counts=manifest.train_class_counts,
        fingerprint=manifest.source_fingerprint,
        cut_sha256=manifest.cut.cut_sha256,
        train_per_interval=_train_per_interval(folder) if per_interval else (),
        task=manifest.task,
    )


def _train_per_interval(folder: GraphFolder) -> tuple[int, ...]:
    def count(interval: int) -> int:
        is_train = folder.array(interval, "masks") & TRAIN != 0
        return sum(count_entries(folder.array(interval, "labels"), is_train, folder.manifest.num_classes))

    return tuple(count(interval) for interval in range(folder.num_intervals))


def prepare_job(spec: JobSpec, *, base_folder: Path, cache_dir: Path, observer: Observer) -> PreparedJob:
    """Reads the dataset and cuts it, unless the cache holds the same already or the dataset is a graph folder."""
    observer.doing("reading the dataset")
    given = given_folder(spec.dataset, base_folder)
    if given is not None and as_it_is(spec, given):
        _say_warnings(given.manifest.report, observer)
        return job_of_folder(spec, given)
    dataset = prepare(spec.dataset, base_folder)
    _say_warnings(dataset.report, observer)
    programs = programs_of(spec, dataset)
    observer.doing("cutting the graph into intervals")
    options = cut_options(spec, dataset, programs)
    path = load_or_build(
        dataset.fingerprint, options, lambda path: write_cut(dataset, options, path), cache_dir=cache_dir
    )
    return _prepared(spec, GraphFolder.open(path), programs)


def job_of_folder(spec: JobSpec, folder: GraphFolder) -> PreparedJob:
    """On a graph folder as it is."""
    manifest = folder.manifest
    widths = {"num_features": manifest.num_features, "num_classes": manifest.num_classes}
    return _prepared(spec, folder, derive_programs(spec, **widths, task=manifest.task))


def programs_of(spec: JobSpec, dataset: Dataset) -> Programs:
    num_features = dataset.features.shape[1]
    return derive_programs(spec, num_features=num_features, num_classes=dataset.num_classes, task=dataset.task)


def cut_options(spec: JobSpec, dataset: Dataset, programs: Programs) -> dict[str, Any]:
    """method, seed and num_intervals, where `auto` becomes a number."""
    wanted = spec.cut.num_intervals
    if wanted == "auto":
        without_loops = int(np.count_nonzero(dataset.sources != dataset.targets))
        wanted = num_intervals_auto(dataset.num_nodes, without_loops, widest_task_input(programs))
    return {"method": spec.cut.method, "seed": spec.cut.cut_seed, "num_intervals": wanted}


def write_cut(dataset: Dataset, options: dict[str, Any], path: Path) -> None:
    """The graph folder of a dataset, cut by `options`."""
    edges = EdgeList(dataset.sources, dataset.targets, dataset.num_nodes)
    train = dataset.masks & TRAIN != 0
    cut = make_cut(edges, options["num_intervals"], method=options["method"], seed=options["seed"], train=train)
    write_graph_folder(dataset, cut, path)


def widest_task_input(programs: Programs) -> int:
    """Values per row of the tensor task that reads most."""
    tasks = [step for step in programs.train.steps if step.kind is Kind.APPLY]
    return max(sum(tensor_width(programs.model, name) for name in step.reads) for step in tasks)


def _prepared(spec: JobSpec, folder: GraphFolder, programs: Programs) -> PreparedJob:
    if folder.manifest.weighted:
        check_edge_weights(programs.model, str(folder.manifest.report.get("negative_weights", "")))
    return PreparedJob(spec, folder, programs, loss_of(spec, folder.manifest.train_class_counts, folder.manifest.task))


def _say_warnings(report: Mapping[str, Any], observer: Observer) -> None:
    for text in report.get("warnings", ()):
        observer.note(text)

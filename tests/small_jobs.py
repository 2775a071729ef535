"""Small jobs for tests of whole trainings: a dataset out of arrays, cut and prepared, without a spec file."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from common.job_spec import JobSpec
from common.saga.layer import Model
from common.saga.program import Programs, derive
from graph_server.graph.csr import EdgeList
from graph_server.graph.cut import make_cut
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.graph_folder import write_graph_folder
from graph_server.ingest.dataset import Dataset
from graph_server.ingest.fingerprint import fingerprint
from local_cloud.prepare import PreparedJob, loss_of, programs_of

NUM_FEATURES, NUM_CLASSES = 5, 3


def small_dataset(num_nodes: int = 14, *, num_edges: int = 30, directed: bool = True, seed: int = 0) -> Dataset:
    """A random graph with duplicate edges, self loops, an isolated vertex (the last) and an unlabelled one (the first).

    Both halves of the masks: every second vertex trains, the others are valid or test.
    """
    random = np.random.default_rng(seed)
    sources, targets = random.integers(0, num_nodes - 1, (2, num_edges))
    sources[:3], targets[:3] = (1, 1, 2), (2, 2, 2)
    if not directed:
        sources, targets = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    labels = random.integers(0, NUM_CLASSES, num_nodes)
    labels[0] = -1
    masks = np.array([1, 2, 1, 4], np.uint8)[np.arange(num_nodes) % 4]
    features = random.normal(size=(num_nodes, NUM_FEATURES)).astype(np.float32)
    return dataset_of(sources, targets, features=features, labels=labels, masks=masks, directed=directed)


def dataset_of(
    sources: np.ndarray, targets: np.ndarray, *, features: np.ndarray, labels: np.ndarray, masks: np.ndarray,
    directed: bool,
) -> Dataset:  # fmt: skip
    """Arrays as they stand: no policy is applied."""
    arrays = {"features": features, "labels": labels, "masks": masks, "sources": sources, "targets": targets}
    classes = tuple(range(int(labels.max(initial=0)) + 1))
    return Dataset(
        name="small",
        format="arrays",
        node_ids=np.arange(len(labels)),
        directed=directed,
        class_values=classes,
        report={"valid": int(((masks & 2) > 0).sum())},
        fingerprint=fingerprint(arrays, {"directed": directed}),
        **arrays,
    )


def with_weights(dataset: Dataset, weights: np.ndarray) -> Dataset:
    weights = weights.astype(np.float32)
    mark = fingerprint({"weights": weights}, {"of": dataset.fingerprint})
    return replace(dataset, weights=weights, fingerprint=mark)


def small_job(dataset: Dataset, folder: Path, keys: Mapping[str, Any]) -> PreparedJob:
    """keys: dotted keys of the job spec; what is not given is the schema's default, 4 intervals by hash apart."""
    spec = small_spec(keys)
    programs = programs_of(spec, dataset)
    return _prepared(dataset, folder, spec, programs)


def job_of(model: Model, dataset: Dataset, folder: Path, keys: Mapping[str, Any]) -> PreparedJob:
    """The same for a model that is declared elsewhere than in common/models; keys of `model` do not reach it."""
    spec = small_spec(keys)
    programs = derive(model, hoist=spec.training.hoist, commute=spec.training.commute)
    return _prepared(dataset, folder, spec, programs)


def small_spec(keys: Mapping[str, Any]) -> JobSpec:
    values: dict[str, dict[str, Any]] = {
        "dataset": {"path": "small"},
        "cut": {"num_intervals": 4, "method": "hash"},
    }
    for dotted, value in keys.items():
        group, key = dotted.split(".")
        values.setdefault(group, {})[key] = value
    return JobSpec.model_validate(values)


def _prepared(dataset: Dataset, folder: Path, spec: JobSpec, programs: Programs) -> PreparedJob:
    graph = GraphFolder.open(_graph_folder(dataset, spec, folder))
    return PreparedJob(spec, graph, programs, loss_of(spec, graph.manifest.train_class_counts, graph.manifest.task))


def _graph_folder(dataset: Dataset, spec: JobSpec, folder: Path) -> Path:
    edges = EdgeList(dataset.sources, dataset.targets, dataset.num_nodes)
    cut = make_cut(edges, int(spec.cut.num_intervals), method=spec.cut.method, seed=spec.cut.cut_seed)
    path = folder / f"{dataset.fingerprint[:12]}-{cut.sha256[:12]}.dorylus"
    if not path.exists():
        write_graph_folder(dataset, cut, path)
    return path

"""What a job trains on, brought to this machine: its dataset to be cut, or its graph folder, and the spec in full.

A spec's defaults are the model's and the reader's own. Readers look at the data, so the cutter writes the layers that
it found beside the graph folder, where servers that never see the dataset find them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.cloud_names import DEFAULTS, MANIFEST
from common.errors import DatasetError
from common.pricing import prices_of
from common.resolve_spec import Layer, ResolvedSpec, resolve
from graph_server.graph.folder_reader import INTERVAL_EDGES, GraphFolder
from graph_server.graph.partition import deal_folder
from graph_server.graph.share import files_of_server, reads_ghost_features
from lambda_functions.estimate import check_budget
from local_cloud.given_folder import as_it_is
from local_cloud.load_job import default_layers
from local_cloud.observer import Observer
from local_cloud.on_instance.aws import Aws
from local_cloud.on_instance.bucket import Bucket
from local_cloud.on_instance.job_record import JobRecord
from local_cloud.prepare import PreparedJob, job_of_folder, prepare_job

OF_ALL = ("labels.npy", "masks.npy")
"""What is counted of every interval, for one optimizer step per interval and for predictions."""


@dataclass(frozen=True)
class Data:
    """`work`: the folder for what is fetched."""

    aws: Aws
    record: JobRecord
    bucket: Bucket
    work: Path

    @property
    def given(self) -> Layer:
        return Layer("the job spec", json.loads(self.record.text("spec")))

    @property
    def _here(self) -> Layer:
        """What holds in this deployment, whatever the spec says."""
        record = self.record
        backend: dict[str, Any] = {"max_lambdas": record.number("max_lambdas")}
        if _said(self.given.values, "backend", "name") in (None, "auto"):
            backend["name"] = "hybrid"
        values = {
            "backend": backend,
            "cluster": {"instance_type": record.text("launched_type")},
            "budget": {"max_cost_usd": float(record.text("max_cost_usd"))},
            "output": {"path": record.text("output")},
        }
        return Layer("this deployment", values)

    # ---- phase cut

    def cut(self, observer: Observer) -> None:
        """The graph folder into the bucket, its manifest last. Raises SpecError if its training cannot be paid for."""
        observer.doing("fetching the dataset")
        local = Layer("this instance", {"dataset": {"path": str(self._fetch_dataset())}})
        below = default_layers([self.given, local], self.work)
        spec = resolve([*below, self.given, local]).spec
        job = prepare_job(spec, base_folder=self.work, cache_dir=self.work, observer=observer)
        observer.doing("uploading the graph folder")
        prefix = self.record.text("graph")
        self.bucket.write(prefix + DEFAULTS, _encode(below))
        self.bucket.send_folder(job.folder.path, prefix, last=MANIFEST)
        of_training, prices = resolve([*below, self.given, self._here]).spec, prices_of(self.aws.s3.meta.region_name)
        check_budget(of_training, job.sizes, float(self.record.text("max_cost_usd")), prices)

    # ---- phase train

    def prepare(self, observer: Observer, *, graph_server: int | None) -> tuple[ResolvedSpec, PreparedJob]:
        """Graph folders' files are memory-mapped where they are fetched to. `graph_server`: its number; None for who is
        none, and reads neither edges nor features."""
        if graph := self.record.text("graph"):
            return self._prepare_cut(graph, observer, graph_server=graph_server)
        layers = [self.given, self._here]
        if self.record.text("dataset").startswith("s3://"):
            observer.doing("fetching the graph folder")
            if (found := self._prepare_given(graph_server=graph_server)) is not None:
                return found
            layers.append(Layer("this instance", {"dataset": {"path": str(self._fetch_dataset())}}))
        below = default_layers(layers, self.work)
        spec = resolve([*below, *layers]).spec
        job = prepare_job(spec, base_folder=self.work, cache_dir=self.work, observer=observer)
        resolved = resolve([*below, self.given, self._here])
        return resolved, replace(job, spec=resolved.spec)

    def _prepare_cut(
        self, graph: str, observer: Observer, *, graph_server: int | None
    ) -> tuple[ResolvedSpec, PreparedJob]:
        observer.doing("fetching the graph folder")
        below = self.bucket.read(graph + DEFAULTS)
        if below is None:
            raise DatasetError(f"s3://{self.bucket.name}/{graph} is no whole graph folder", fix="delete it")
        resolved = resolve([*_decode(below), self.given, self._here])
        path = self.work / "graph.dorylus"
        self.bucket.fetch([graph + MANIFEST, graph + INTERVAL_EDGES], graph, path)
        job = job_of_folder(resolved.spec, GraphFolder.open(path, only=()))
        return resolved, _with_share(job, self.bucket, graph, graph_server)

    def _prepare_given(self, *, graph_server: int | None) -> tuple[ResolvedSpec, PreparedJob] | None:
        """Of a graph folder that is the dataset. None if the job wants another cut of it, or a policy: for that it is
        read as a whole."""
        source, prefix = self._place
        path, folder = self._dataset_path(prefix), f"{prefix}/"
        (path / "intervals").mkdir(parents=True, exist_ok=True)
        source.fetch([folder + MANIFEST, folder + INTERVAL_EDGES], folder, path)
        layers = [self.given, self._here, Layer("this instance", {"dataset": {"path": str(path)}})]
        below = default_layers(layers, self.work, only=())
        spec, given = resolve([*below, *layers]).spec, GraphFolder.open(path, only=())
        if not as_it_is(spec, given):
            return None
        resolved = resolve([*below, self.given, self._here])
        return resolved, _with_share(job_of_folder(resolved.spec, given), source, folder, graph_server)

    # ---- the dataset

    @property
    def _place(self) -> tuple[Bucket, str]:
        """Where it is; a folder without the slash at its end."""
        name, _, prefix = self.record.text("dataset").removeprefix("s3://").partition("/")
        return Bucket(self.aws, name), prefix.rstrip("/")

    def _dataset_path(self, prefix: str) -> Path:
        return self.work / "dataset" / prefix.rpartition("/")[2]

    def _fetch_dataset(self) -> Path:
        """A file or a folder of the same name. Raises DatasetError if it is gone."""
        source, prefix = self._place
        of_it = [key for key in source.keys(prefix) if key == prefix or key.startswith(f"{prefix}/")]
        files = [key for key in of_it if not key.endswith("/")]
        if not files:
            raise DatasetError(
                f"nothing is at {self.record.text('dataset')}",
                why="it was there when the job was handed in",
                fix="upload it again, and the job spec after it",
            )
        parent = prefix.rpartition("/")[0]
        source.fetch(files, f"{parent}/" if parent else "", self.work / "dataset")
        return self._dataset_path(prefix)


def _with_share(job: PreparedJob, source: Bucket, prefix: str, graph_server: int | None) -> PreparedJob:
    """With the files that this instance reads; one that is started anew, under another deal, fetches what it has
    not."""
    wanted, path = _files(job, graph_server), job.folder.path
    missing = [name for name in sorted(wanted) if not _is_there(job.folder, name)]
    source.fetch([prefix + name for name in missing], prefix, path)
    return replace(job, folder=GraphFolder.open(path, only=wanted))


def _files(job: PreparedJob, graph_server: int | None) -> frozenset[str]:
    """Those of the graph folder that this instance reads."""
    files = job.folder.manifest.files
    of_all = frozenset(name for name in files if not name.startswith("intervals/") or name.endswith(OF_ALL))
    if graph_server is None:
        return of_all
    book = deal_folder(job.folder, job.spec.cluster.num_graph_servers)
    own = files_of_server(job.folder, book, graph_server, ghost_features=reads_ghost_features(job.programs))
    return own | of_all if job.spec.training.weight_update == "interval" else own


def _is_there(folder: GraphFolder, name: str) -> bool:
    path = folder.path / name
    return path.is_file() and path.stat().st_size == folder.manifest.files[name].bytes


def _said(values: Mapping[str, object], group: str, key: str) -> object:
    inner = values.get(group)
    return inner.get(key) if isinstance(inner, Mapping) else None


def _encode(layers: list[Layer]) -> bytes:
    return json.dumps([{"source": layer.source, "values": layer.values} for layer in layers], indent=1).encode()


def _decode(text: bytes) -> list[Layer]:
    return [Layer(one["source"], one["values"], is_default=True) for one in json.loads(text)]

"""A job's data by way of a bucket is what it is on one machine: the same cut, the same spec, the same facts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import DatasetError
from local_cloud.observer import Silent
from local_cloud.on_instance.bucket import Bucket
from local_cloud.on_instance.data import DEFAULTS, Data
from local_cloud.on_instance.job_record import JobRecord
from local_cloud.prepare import PreparedJob, prepare_job
from tests.local_cloud.jobs import ROOT, load

CORA = ROOT / "graph_server" / "datasets" / "bundled" / "cora.npz"
GRAPH = "graphs/0123.dorylus/"
HERE = {
    "max_lambdas": 7,
    "max_cost_usd": "2.5",
    "launched_type": "c7g.large",
    "output": "s3://small-bucket/runs/job-1/",
}


@pytest.fixture
def data(cloud, aws, tmp_path: Path) -> Callable[..., Data]:
    def made(where: str, *, path: str, graph: str = "") -> Data:
        spec = json.dumps({"name": "mine", "dataset": {"path": path}, "cut": {"num_intervals": 6}})
        record = JobRecord({**HERE, "spec": spec, "dataset": path, "graph": graph})
        (tmp_path / where).mkdir()
        return Data(aws, record, Bucket(aws, cloud.bucket), tmp_path / where)

    return made


@pytest.fixture
def alone(tmp_path: Path) -> PreparedJob:
    spec = load(str(CORA), {"cut.num_intervals": "6"}).spec
    return prepare_job(spec, base_folder=ROOT, cache_dir=tmp_path / "alone", observer=Silent())


def test_cut_here_and_trained_there(cloud, data, alone):
    place = f"s3://{cloud.bucket}/datasets/cora.npz"
    cloud.put("datasets/cora.npz", CORA.read_bytes())
    data("cutter", path=place, graph=GRAPH).cut(Silent())
    assert {f"{GRAPH}{name}" for name in ("manifest.json", DEFAULTS, "ids.npy")} <= set(cloud.keys(GRAPH))
    resolved, job = data("graph", path=place, graph=GRAPH).prepare(Silent(), for_graph_server=True)
    assert job.facts == alone.facts
    assert (job.spec.model, job.spec.training) == (alone.spec.model, alone.spec.training)
    assert job.spec.dataset.path == place
    assert (resolved.spec.backend.name, resolved.spec.backend.max_lambdas) == ("hybrid", 7)
    assert (resolved.spec.budget.max_cost_usd, resolved.spec.cluster.instance_type) == (2.5, "c7g.large")
    assert resolved.sources["backend.max_lambdas"] == "this deployment"


def test_a_parameter_server_fetches_neither_edges_nor_features(cloud, data, alone):
    place = f"s3://{cloud.bucket}/datasets/cora.npz"
    cloud.put("datasets/cora.npz", CORA.read_bytes())
    data("cutter", path=place, graph=GRAPH).cut(Silent())
    _, job = data("parameter", path=place, graph=GRAPH).prepare(Silent(), for_graph_server=False)
    assert job.facts == alone.facts
    names = {path.name for path in (job.folder.path / "intervals" / "00000").iterdir()}
    assert names == {"labels.npy", "masks.npy"}


def test_a_given_graph_folder_is_taken_as_it_is(cloud, aws, data, alone):
    bucket = Bucket(aws, cloud.bucket)
    bucket.send_folder(alone.folder.path, "datasets/mine.dorylus/", last="manifest.json")
    given = data("given", path=f"s3://{cloud.bucket}/datasets/mine.dorylus")
    resolved, job = given.prepare(Silent(), for_graph_server=True)
    assert job.facts == alone.facts
    assert job.folder.path == given.work / "dataset" / "mine.dorylus"
    assert resolved.spec.dataset.path == f"s3://{cloud.bucket}/datasets/mine.dorylus"


def test_a_bundled_dataset_is_cut_where_it_is_read(data, alone):
    _, job = data("bundled", path="cora").prepare(Silent(), for_graph_server=False)
    assert job.facts == alone.facts


def test_what_is_gone_or_only_begins_alike_is_not_there(cloud, data):
    cloud.put("datasets/cora.npz.old", b"x")
    with pytest.raises(DatasetError, match="nothing is at s3://small-bucket/datasets/cora.npz"):
        data("gone", path=f"s3://{cloud.bucket}/datasets/cora.npz", graph=GRAPH).cut(Silent())
    with pytest.raises(DatasetError, match="is no whole graph folder"):
        data("half", path="s3://small-bucket/datasets/x", graph=GRAPH).prepare(Silent(), for_graph_server=True)

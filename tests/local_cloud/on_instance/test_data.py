"""A job's data by way of a bucket is what it is on one machine: the same cut, the same spec, the same facts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import DatasetError, SpecError
from graph_server.graph.partition import Partition, deal_folder
from lambda_functions.estimate import least_usd
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
    def made(where: str, *, path: str, graph: str = "", servers: int = 1, **here: object) -> Data:
        cluster = {"num_graph_servers": servers}
        spec = {"name": "mine", "dataset": {"path": path}, "cut": {"num_intervals": 6}, "cluster": cluster}
        record = JobRecord({**HERE, "spec": json.dumps(spec), "dataset": path, "graph": graph, **here})
        (tmp_path / where).mkdir(exist_ok=True)
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
    resolved, job = data("graph", path=place, graph=GRAPH).prepare(Silent(), graph_server=0)
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
    _, job = data("parameter", path=place, graph=GRAPH).prepare(Silent(), graph_server=None)
    assert job.facts == alone.facts
    names = {path.name for path in (job.folder.path / "intervals" / "00000").iterdir()}
    assert names == {"labels.npy", "masks.npy"}


def test_a_graph_server_fetches_its_own_intervals_and_after_another_deal_what_it_has_not(cloud, data, alone):
    place = f"s3://{cloud.bucket}/datasets/cora.npz"
    cloud.put("datasets/cora.npz", CORA.read_bytes())
    data("cutter", path=place, graph=GRAPH).cut(Silent())

    def fetched(servers: int, number: int) -> dict[str, int]:
        """File -> when it was written."""
        of = data("graph", path=place, graph=GRAPH, servers=servers)
        folder = of.prepare(Silent(), graph_server=number)[1].folder
        Partition.load(folder, deal_folder(folder, servers), number)
        files = (path for path in folder.path.rglob("*") if path.is_file())
        return {str(path.relative_to(folder.path)): path.stat().st_mtime_ns for path in files}

    few = fetched(3, 1)
    assert len([name for name in few if name.endswith("sources.npy")]) == 2  # of six intervals
    assert len([name for name in few if name.endswith("indptr.npy")]) == 6  # on Cora every interval reads every other
    assert not {"ids.npy", "order.npy"} & set(few)
    more = fetched(1, 0)
    assert len([name for name in more if name.endswith("sources.npy")]) == 6
    assert {name: at for name, at in more.items() if name in few and name.startswith("intervals/")} == {
        name: at for name, at in few.items() if name.startswith("intervals/")
    }


def test_a_budget_below_the_estimate_ends_the_job_before_there_are_servers(cloud, data, alone):
    """The graph folder stays: the next job on this data needs no cutter, and is refused at once if it is as poor."""
    place = f"s3://{cloud.bucket}/datasets/cora.npz"
    cloud.put("datasets/cora.npz", CORA.read_bytes())
    least = least_usd(alone.spec, alone.sizes)
    with pytest.raises(SpecError, match=r"estimated at \$0.0\d at the least"):
        data("cutter", path=place, graph=GRAPH, max_cost_usd=str(0.2 * least)).cut(Silent())
    assert f"{GRAPH}manifest.json" in cloud.keys(GRAPH)


def test_a_given_graph_folder_is_taken_as_it_is(cloud, aws, data, alone):
    bucket = Bucket(aws, cloud.bucket)
    bucket.send_folder(alone.folder.path, "datasets/mine.dorylus/", last="manifest.json")
    given = data("given", path=f"s3://{cloud.bucket}/datasets/mine.dorylus")
    resolved, job = given.prepare(Silent(), graph_server=0)
    assert job.facts == alone.facts
    assert job.folder.path == given.work / "dataset" / "mine.dorylus"
    assert resolved.spec.dataset.path == f"s3://{cloud.bucket}/datasets/mine.dorylus"


def test_of_a_given_graph_folder_a_server_fetches_its_share_and_all_for_another_cut(cloud, aws, data, alone):
    Bucket(aws, cloud.bucket).send_folder(alone.folder.path, "datasets/mine.dorylus/", last="manifest.json")
    place = f"s3://{cloud.bucket}/datasets/mine.dorylus"

    def features(job: PreparedJob) -> int:
        return len(list((job.folder.path / "intervals").rglob("features.npy")))

    _, whole = data("whole", path=place).prepare(Silent(), graph_server=0)
    _, share = data("share", path=place, servers=3).prepare(Silent(), graph_server=1)
    _, none = data("none", path=place, servers=3).prepare(Silent(), graph_server=None)
    assert whole.facts == share.facts == none.facts == alone.facts
    assert len(list((share.folder.path / "intervals").rglob("sources.npy"))) == 2  # of six intervals
    assert features(whole) == 6
    assert features(none) == 0
    spec = json.dumps({"dataset": {"path": place}, "cut": {"num_intervals": 4}})
    _, other = data("other", path=place, spec=spec, servers=3).prepare(Silent(), graph_server=1)
    assert other.facts.num_intervals == 4
    assert features(other) == 4


def test_a_bundled_dataset_is_cut_where_it_is_read(data, alone):
    _, job = data("bundled", path="cora").prepare(Silent(), graph_server=None)
    assert job.facts == alone.facts


def test_what_is_gone_or_only_begins_alike_is_not_there(cloud, data):
    cloud.put("datasets/cora.npz.old", b"x")
    with pytest.raises(DatasetError, match="nothing is at s3://small-bucket/datasets/cora.npz"):
        data("gone", path=f"s3://{cloud.bucket}/datasets/cora.npz", graph=GRAPH).cut(Silent())
    with pytest.raises(DatasetError, match="is no whole graph folder"):
        data("half", path="s3://small-bucket/datasets/x", graph=GRAPH).prepare(Silent(), graph_server=0)

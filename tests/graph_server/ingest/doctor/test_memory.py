"""The forecast of memory and disk against what is really taken."""

from pathlib import Path

import msgspec
import pytest

from common import plugins
from common.job_setup import derive_programs
from common.job_spec import DatasetSpec, JobSpec
from common.saga.cost import stored_bytes
from graph_server.graph.csr import EdgeList
from graph_server.graph.cut import make_cut
from graph_server.graph.folder_reader import GraphFolder
from graph_server.graph.graph_folder import write_graph_folder
from graph_server.graph.partition import Partition, deal_folder
from graph_server.graph.tensor_store import TensorStore
from graph_server.ingest.dataset import prepare
from graph_server.ingest.doctor.diagnosis import Level
from graph_server.ingest.doctor.examine import examine
from graph_server.ingest.doctor.memory import forecast_memory, memory_findings

CORA = DatasetSpec(path="cora")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> GraphFolder:
    dataset = prepare(CORA, Path.cwd())
    edges = EdgeList(dataset.sources, dataset.targets, dataset.num_nodes)
    path = tmp_path_factory.mktemp("folder") / "cora.dorylus"
    write_graph_folder(dataset, make_cut(edges, 3, method="range", seed=0), path)
    return GraphFolder.open(path)


@pytest.mark.parametrize("model", plugins.names("common.models"))
def test_tensors_are_those_of_the_store(folder: GraphFolder, model: str):
    spec = JobSpec.model_validate({"dataset": "cora", "model": {"name": model}})
    programs = derive_programs(spec, num_features=1433, num_classes=7)
    partition = Partition.load(folder, deal_folder(folder, 1), 0)
    assert stored_bytes(programs, num_own=2708) == TensorStore(programs, partition).nbytes


def test_the_graph_folder_is_as_large_as_foreseen(folder: GraphFolder):
    programs = derive_programs(JobSpec.model_validate({"dataset": "cora"}), num_features=1433, num_classes=7)
    memory = forecast_memory(examine(CORA, Path.cwd()), programs, "gcn")
    assert memory is not None
    written = sum(file.bytes for file in folder.manifest.files.values())
    assert memory.graph_folder == pytest.approx(written, rel=0.01)
    assert memory.dataset > 2708 * 1433 * 4
    assert memory.available > 0


def test_too_little_memory_is_a_warning():
    programs = derive_programs(JobSpec.model_validate({"dataset": "cora"}), num_features=1433, num_classes=7)
    memory = forecast_memory(examine(CORA, Path.cwd()), programs, "gcn")
    assert memory is not None
    assert memory_findings(msgspec.structs.replace(memory, available=10**9)) == ()
    (found,) = memory_findings(msgspec.structs.replace(memory, available=10**6))
    assert (found.level, found.code) == (Level.WARNING, "memory")


def test_what_could_not_be_counted_is_not_foreseen():
    programs = derive_programs(JobSpec.model_validate({"dataset": "cora"}), num_features=1433, num_classes=7)
    assert forecast_memory(examine(DatasetSpec(path="./nowhere"), Path.cwd()), programs, "gcn") is None

"""A graph folder as the dataset of a job: mapped as it is, or read and cut anew if the job asks for more."""

from pathlib import Path

import pytest

from cli.spec_flags import flag_layer
from common.errors import DatasetError
from common.resolve_spec import ResolvedSpec
from local_cloud.convert import convert
from local_cloud.observer import Silent
from local_cloud.prepare import PreparedJob, prepare_job
from local_cloud.training import RunOptions, train_job
from tests.local_cloud.jobs import MY_GRAPH, load, load_my_graph

CUT = {"cut.num_intervals": "5", "cut.method": "hash", "cut.cut_seed": "3"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "mine.dorylus"
    convert(MY_GRAPH, path, flag_layer({"dataset.directed": "false", **CUT}), Path.cwd())
    return path


def job_on(path: Path, cache_dir: Path, settings: dict[str, str] | None = None) -> PreparedJob:
    spec = load(str(path), settings or {}).spec
    return prepare_job(spec, base_folder=Path.cwd(), cache_dir=cache_dir, observer=Silent())


def test_it_is_mapped_where_it_lies(folder: Path, cache_dir: Path):
    job = job_on(folder, cache_dir)
    assert job.folder.path == folder
    assert not list(cache_dir.iterdir())


def test_its_cut_stands_in_the_spec(folder: Path):
    resolved = load(str(folder), {})
    cut = resolved.spec.cut
    assert (cut.num_intervals, cut.method, cut.cut_seed) == (5, "hash", 3)
    assert resolved.sources["cut.method"] == f"cut of {folder}"


@pytest.mark.parametrize(
    "settings",
    [{"cut.num_intervals": "2"}, {"cut.method": "range"}, {"cut.cut_seed": "4"}, {"dataset.normalize_features": "row"}],
)
def test_what_is_not_in_it_is_made_in_the_cache(folder: Path, cache_dir: Path, settings: dict[str, str]):
    job = job_on(folder, cache_dir, settings)
    assert job.folder.path.is_relative_to(cache_dir)
    assert job.folder.num_intervals == int(settings.get("cut.num_intervals", 5))
    assert job.facts.num_classes == 3


def test_weights_are_the_same_to_the_last_bit(folder: Path, tmp_path: Path, cache_dir: Path):
    def weights_of(resolved: ResolvedSpec, name: str) -> str:
        options = RunOptions(Path.cwd(), cache_dir, tmp_path / name, in_process=True)
        return str(train_job(resolved, options, Silent()).weights_sha256)

    few = {"training.num_epochs": "3"}
    from_the_file = load_my_graph(training__num_epochs="3", **{key.replace(".", "__"): CUT[key] for key in CUT})
    assert weights_of(load(str(folder), few), "a") == weights_of(from_the_file, "b")


def test_a_folder_that_lacks_a_file_is_refused(folder: Path):
    (folder / "intervals" / "00002" / "labels.npy").unlink()
    with pytest.raises(DatasetError, match=r"00002/labels\.npy is damaged"):
        load(str(folder), {})

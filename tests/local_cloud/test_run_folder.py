"""The run folder: claimed once, never half a file, nothing of another run."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from safetensors import safe_open

from common.errors import SpecError
from local_cloud.observer import EpochReport
from local_cloud.run_folder import BEST_WEIGHTS, JsonLines, RunFolder, new_job_id


def report(epoch: int) -> EpochReport:
    return EpochReport(
        epoch=epoch, loss=1.5, train_accuracy=0.5, valid_accuracy=None, test_accuracy=0.25, exact=True, seconds=0.1
    )


def test_a_job_id_is_name_time_and_six_digits():
    first, second = new_job_id("my.job"), new_job_id("my.job")
    assert re.fullmatch(r"my\.job-\d{8}T\d{6}-[0-9a-f]{6}", first)
    assert first != second


def test_an_empty_folder_is_taken_and_given_back_as_it_was(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    RunFolder.claim(tmp_path / "mine").discard()
    RunFolder.claim(tmp_path / "new" / "run").discard()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["mine"]


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path):
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(SpecError) as refused:
        RunFolder.claim(tmp_path)
    assert str(refused.value) == (
        f"the run folder {tmp_path} is not empty\n"
        "  why: it holds summary.json, and results of two runs would mix\n"
        "  fix: name a new folder with --run-dir, or leave --run-dir away"
    )


@pytest.mark.parametrize("below", ["file", "file/run"])
def test_a_path_that_cannot_be_a_folder_is_refused(tmp_path: Path, below: str):
    (tmp_path / "file").write_text("")
    with pytest.raises(SpecError, match="cannot be written") as refused:
        RunFolder.claim(tmp_path / below)
    assert refused.value.why
    assert "--run-dir" in refused.value.fix


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(SpecError, match="cannot be written"):
        RunFolder.claim(tmp_path)


def test_weights_are_read_back_to_the_bit(tmp_path: Path):
    weights = {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.array([np.float32(1) / 3])}
    RunFolder.claim(tmp_path).write_weights(BEST_WEIGHTS, weights, 17)
    with safe_open(tmp_path / BEST_WEIGHTS, "numpy") as file:
        assert sorted(file.keys()) == ["a", "b"]
        assert file.metadata() == {"weights_version": "17"}
        assert all(file.get_tensor(name).tobytes() == weights[name].tobytes() for name in weights)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    folder = RunFolder.claim(tmp_path)
    folder.write_text("summary.json", "old")
    with pytest.raises(AttributeError):
        folder.write_table("summary.json", None)  # type: ignore[arg-type]
    assert [entry.name for entry in tmp_path.iterdir()] == ["summary.json"]
    assert (tmp_path / "summary.json").read_text() == "old"


def test_a_table_is_read_back(tmp_path: Path):
    RunFolder.claim(tmp_path).write_table("predictions.parquet", pyarrow.table({"id": [3, 1]}))
    assert pyarrow.parquet.read_table(tmp_path / "predictions.parquet").to_pydict() == {"id": [3, 1]}


def test_each_line_is_there_as_soon_as_it_is_written(tmp_path: Path):
    with JsonLines(tmp_path / "metrics.jsonl") as lines:
        for epoch in (1, 2):
            lines.write(report(epoch))
            written = (tmp_path / "metrics.jsonl").read_text().splitlines()
            assert [json.loads(line)["epoch"] for line in written] == list(range(1, epoch + 1))
    assert json.loads(written[0]) == {
        "epoch": 1,
        "loss": 1.5,
        "train_accuracy": 0.5,
        "valid_accuracy": None,
        "test_accuracy": 0.25,
        "train_metric": None,
        "valid_metric": None,
        "test_metric": None,
        "exact": True,
        "seconds": 0.1,
    }

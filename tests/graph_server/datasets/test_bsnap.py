"""Binary files of the original Dorylus."""

from pathlib import Path

import numpy as np
import pytest

from common.errors import DatasetError
from common.job_spec import DatasetSpec
from graph_server.datasets import bsnap
from tests.graph_server.datasets.folders import load


def read(folder: Path, **options):
    return bsnap.read(folder, DatasetSpec(path=str(folder), **options))


def words(*numbers: int) -> bytes:
    return np.array(numbers, "<u4").tobytes()


def test_the_three_files(tmp_path: Path):
    raw = read(bsnap.example(tmp_path))
    assert (raw.sources.tolist(), raw.targets.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 0])
    assert raw.features.tolist() == [[1, 0], [0, 1], [1, 1], [2, 0]]
    assert raw.labels.tolist() == [0, 1, 0, 1]
    assert raw.masks is None
    assert load(tmp_path, directed=True).num_classes == 2


@pytest.mark.parametrize("name", ["features", "labels"])
def test_a_missing_file_is_named(tmp_path: Path, name: str):
    bsnap.example(tmp_path)
    (tmp_path / f"{name}.bsnap").unlink()
    with pytest.raises(DatasetError) as error:
        load(tmp_path, directed=True)
    assert f"lacks {name}.bsnap" in error.value.why


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("graph", b"", "less than its header"),
        ("graph", words(8, 4, 0, 0), "its ids have 8 bytes; known: 4"),
        ("graph", words(4, 4, 2, 0, 0, 1), r"it has 24 bytes; 2 edges take 32"),
        ("graph", words(4, 4, 1, 0, 0, 9), "names 1 times a vertex that does not exist: edge 0: 9"),
        ("graph", words(4, 0, 0, 0), "announces 0 vertices"),
        ("features", words(2, 1, 1), "it has 12 bytes; 4 x 2 features take 36"),
        ("labels", words(2, 0, 1, 2, 0), "vertex 2 has the label 2, and 2 classes are announced"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, name: str, content: bytes, reason: str):
    bsnap.example(tmp_path)
    (tmp_path / f"{name}.bsnap").write_bytes(content)
    with pytest.raises(DatasetError, match=reason):
        read(tmp_path)

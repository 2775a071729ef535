"""Nothing a pickle names is ever run; what old pickles of arrays hold is read all the same."""

import contextlib
import os
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import DatasetError
from graph_server.ingest.restricted_unpickler import load_pickle
from tests.examples import examples


def written(tmp_path: Path, content: bytes) -> Path:
    file = tmp_path / "ind.x.graph"
    file.write_bytes(content)
    return file


class Runs:
    """A pickle that runs a command when it is loaded."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self):
        return os.system, (f"touch {self.file}",)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_command_in_a_pickle_is_refused_by_name_and_not_run(tmp_path: Path, protocol: int):
    proof = tmp_path / "ran"
    file = written(tmp_path, pickle.dumps({0: [Runs(proof)]}, protocol=protocol))
    with pytest.raises(DatasetError, match=r"names (posix|nt)\.system, which is refused") as error:
        load_pickle(file)
    assert "could run any code" in error.value.why
    assert not proof.exists()


@pytest.mark.parametrize(
    "name",
    ["builtins eval", "builtins getattr", "__builtin__ eval", "numpy load", "numpy.core.multiarray scalar",
     "copyreg _reconstructor", "collections OrderedDict", "builtins list.append"],
)  # fmt: skip
def test_every_other_name_is_refused(tmp_path: Path, name: str):
    module, _, attribute = name.partition(" ")
    with pytest.raises(DatasetError, match="is refused"):
        load_pickle(written(tmp_path, f"c{module}\n{attribute}\n.".encode()))


@pytest.mark.parametrize("dtype", ["f4", ">f8", "i4", "i8", "b1", "u1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_comes_back(tmp_path: Path, dtype: str, order: str):
    array = np.asarray(np.arange(6).reshape(2, 3) % 2, dtype=dtype, order=order)
    if dtype == "u1":
        array = array.astype("i1")
    loaded = load_pickle(written(tmp_path, pickle.dumps(array, protocol=2)))
    assert loaded.dtype == array.dtype
    assert np.array_equal(loaded, array)


def test_a_sparse_matrix_comes_back(tmp_path: Path):
    matrix = scipy.sparse.csr_matrix(np.array([[0, 2.0], [3, 0]], dtype=np.float32))
    loaded = load_pickle(written(tmp_path, pickle.dumps(matrix, protocol=2)))
    assert np.array_equal(loaded.toarray(), matrix.toarray())


def test_a_pickle_of_python_2_comes_back(tmp_path: Path):
    assert load_pickle(written(tmp_path, pickle.dumps(defaultdict(list, {0: [1]}), protocol=2))) == {0: [1]}
    old = b"\x80\x02ccollections\ndefaultdict\nq\x01c__builtin__\nlist\nq\x02\x85q\x03Rq\x04K\x00]q\x05K\x01as."
    assert load_pickle(written(tmp_path, old)) == {0: [1]}


def test_an_array_of_objects_is_refused(tmp_path: Path):
    array = np.array([[1], {}], dtype=object)
    with pytest.raises(DatasetError, match="not a plain number"):
        load_pickle(written(tmp_path, pickle.dumps(array, protocol=2)))


def test_an_array_whose_size_lies_is_refused(tmp_path: Path):
    honest = pickle.dumps(np.zeros((1, 7), np.int8), protocol=2)
    with pytest.raises(DatasetError, match="comes with 7 bytes"):
        load_pickle(written(tmp_path, honest.replace(b"K\x01K\x07", b"K\x64K\x07", 1)))


def test_a_truncated_pickle_is_refused(tmp_path: Path):
    whole = pickle.dumps({0: list(range(100))}, protocol=2)
    with pytest.raises(DatasetError, match="cannot be read"):
        load_pickle(written(tmp_path, whole[: len(whole) // 2]))


@given(st.binary(max_size=60))
@settings(max_examples=examples(150))
def test_any_bytes_give_a_value_or_a_dataset_error(tmp_path_factory, content: bytes):
    file = written(tmp_path_factory.getbasetemp(), b"\x80\x02" + content)
    with contextlib.suppress(DatasetError):
        assert not callable(load_pickle(file))
